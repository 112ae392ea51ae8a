#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| splitter_tests::fuzz::run("client_hello", data));
