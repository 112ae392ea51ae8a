use super::*;

#[test]
fn a_coding_after_a_length() {
    refused_fields(
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        400,
        "bad-framing",
    );
}

#[test]
fn a_length_after_a_coding() {
    refused_fields(
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        400,
        "bad-framing",
    );
}

#[test]
fn a_length_between_other_fields_after_a_coding() {
    refused_fields(
        "X: a\r\ntransfer-encoding: Chunked\r\nY: b\r\nCONTENT-LENGTH: 0\r\nZ: c\r\n",
        400,
        "bad-framing",
    );
}

macro_rules! bad_lengths {
    ($($name:ident: $fields:expr;)*) => {$(
        #[test]
        fn $name() {
            refused_fields($fields, 400, "bad-framing");
        }
    )*};
}

bad_lengths! {
    two_different: "Content-Length: 3\r\nContent-Length: 4\r\n";
    the_same_twice: "Content-Length: 3\r\nContent-Length: 3\r\n";
    a_list: "Content-Length: 3, 3\r\n";
    a_sign: "Content-Length: +3\r\n";
    below_zero: "Content-Length: -1\r\n";
    hexadecimal: "Content-Length: 0x3\r\n";
    empty: "Content-Length:\r\n";
    a_word: "Content-Length: three\r\n";
    two_numbers: "Content-Length: 3 3\r\n";
    a_fraction: "Content-Length: 3.0\r\n";
    beyond_64_bits: "Content-Length: 18446744073709551616\r\n";
    a_coding_twice: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
}

macro_rules! unknown_codings {
    ($($name:ident: $fields:expr;)*) => {$(
        #[test]
        fn $name() {
            refused_fields($fields, 501, "unknown-coding");
        }
    )*};
}

unknown_codings! {
    gzip: "Transfer-Encoding: gzip\r\n";
    gzip_then_chunked: "Transfer-Encoding: gzip, chunked\r\n";
    gzip_then_chunked_in_two_lines:
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n";
    identity: "Transfer-Encoding: identity\r\n";
    nearly_chunked: "Transfer-Encoding: xchunked\r\n";
    chunked_in_quotes: "Transfer-Encoding: \"chunked\"\r\n";
    no_coding_at_all: "Transfer-Encoding:\r\n";
    chunked_with_a_parameter: "Transfer-Encoding: chunked;x=y\r\n";
}

#[test]
fn zeros_in_front_of_a_length_are_decimal() {
    let seen = accepted("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 010\r\n\r\n0123456789");
    assert_eq!(seen.body, b"0123456789");
}
