use super::*;

macro_rules! bad_hosts {
    ($($name:ident: $fields:expr;)*) => {$(
        #[test]
        fn $name() {
            refused(format!("GET / HTTP/1.1\r\n{}\r\n", $fields), 400, "bad-host");
        }
    )*};
}

bad_hosts! {
    none: "";
    two: "Host: a.test\r\nHost: b.test\r\n";
    the_same_twice: "Host: a.test\r\nHost: a.test\r\n";
    with_a_blank: "Host: a.test b.test\r\n";
    with_a_slash: "Host: a.test/x\r\n";
    with_a_user: "Host: me@a.test\r\n";
    with_a_port_that_is_none: "Host: a.test:x\r\n";
    with_a_port_too_large: "Host: a.test:99999\r\n";
    with_two_ports: "Host: a.test:80:80\r\n";
    with_half_a_bracket: "Host: [::1\r\n";
    with_an_empty_label: "Host: a..test\r\n";
    of_bytes_beyond_ascii: "Host: ä.test\r\n";
}

#[test]
fn case_port_and_final_dot_do_not_matter() {
    for host in ["a.test", "A.Test", "a.test:8080", "a.test."] {
        let seen = accepted(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(seen.field("host"), Some(host));
    }
}

#[test]
fn an_empty_one_belongs_to_no_host() {
    let backend = Backend::named("main");
    let splitter = Splitter::before(&backend);
    let mut client = splitter.client();
    client.send("GET / HTTP/1.1\r\nHost:\r\n\r\n");
    client.answer("GET").assert_own(404);
}
