#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| splitter_tests::fuzz::run("passwords", data));
