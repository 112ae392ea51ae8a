use super::*;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The backend may see the head, but no request that is complete; the connection ends.
#[track_caller]
fn broken(body: impl AsRef<[u8]>) {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send([HEAD.as_bytes(), body.as_ref(), SMUGGLED.as_bytes()].concat());
    client.answer("POST").assert_own(400);
    assert!(client.is_closed(), "the connection is closed");
    assert_eq!(backend.seen(), []);
    eventually("the fault is counted", || {
        splitter.faults("bad-body") == 1.0
    });
}

macro_rules! bad_chunks {
    ($($name:ident: $body:expr;)*) => {$(
        #[test]
        fn $name() {
            broken($body);
        }
    )*};
}

bad_chunks! {
    a_size_that_is_no_number: "xyz\r\nabc\r\n0\r\n\r\n";
    a_size_below_zero: "-3\r\nabc\r\n0\r\n\r\n";
    a_size_with_a_sign: "+3\r\nabc\r\n0\r\n\r\n";
    a_size_with_a_prefix: "0x3\r\nabc\r\n0\r\n\r\n";
    an_empty_size: "\r\nabc\r\n0\r\n\r\n";
    a_size_beyond_64_bits: "10000000000000003\r\nabc\r\n0\r\n\r\n";
    a_size_line_that_ends_in_lf: "3\nabc\r\n0\r\n\r\n";
    an_lf_in_an_extension: "3;x\nabc\r\n0\r\n\r\n";
    a_cr_in_an_extension: "3;x\ry\r\nabc\r\n0\r\n\r\n";
    a_nul_in_an_extension: "3;x\0y\r\nabc\r\n0\r\n\r\n";
    data_longer_than_its_size: "3\r\nabcd\r\n0\r\n\r\n";
    data_that_ends_in_lf: "3\r\nabc\n0\r\n\r\n";
    data_that_ends_in_cr: "3\r\nabc\r0\r\n\r\n";
    a_last_chunk_that_ends_in_lf: "3\r\nabc\r\n0\n\n";
    a_folded_trailer: "3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n";
    a_nul_in_a_trailer: "3\r\nabc\r\n0\r\nX: a\0b\r\n\r\n";
    a_trailer_without_a_colon: "3\r\nabc\r\n0\r\nXa\r\n\r\n";
    a_blank_before_the_colon_of_a_trailer: "3\r\nabc\r\n0\r\nX : a\r\n\r\n";
    a_trailer_that_ends_in_lf: "3\r\nabc\r\n0\r\nX: a\n\r\n";
}

#[test]
fn a_size_line_without_end() {
    broken(format!("3;{}", "x".repeat(100_000)));
}

#[test]
fn trailers_without_end() {
    let trailers: String = (0..20_000).map(|i| format!("X-{i}: x\r\n")).collect();
    broken(format!("3\r\nabc\r\n0\r\n{trailers}\r\n"));
}

/// hyper takes no more of these than 16 KiB a body.
#[test]
fn extensions_without_end() {
    let chunk = format!("3;{}\r\nabc\r\n", "x".repeat(4000));
    broken(chunk.repeat(10));
}

#[test]
fn an_error_after_good_chunks() {
    let good = "1000\r\n".to_owned() + &"x".repeat(0x1000) + "\r\n";
    broken(good.repeat(20) + "nonsense\r\n");
}

#[test]
fn extensions_and_capital_digits_pass() {
    let seen = accepted(format!("{HEAD}A;x=\"y\"\r\n0123456789\r\n0000;z\r\n\r\n"));
    assert_eq!(seen.body, b"0123456789");
}

#[test]
fn the_end_of_the_stream_in_a_body_is_no_end_of_the_body() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send(format!("{HEAD}3\r\nabc\r\n"));
    client.finish();
    assert_eq!(client.try_answer("POST"), None);
    let mut client = splitter.client();
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\nabc");
    client.finish();
    assert_eq!(client.try_answer("POST"), None);
    assert_eq!(backend.seen(), []);
}
