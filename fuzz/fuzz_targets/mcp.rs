#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| piton_fuzz::mcp(data));
