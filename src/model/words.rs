//! Words that piton's readers know, from `config/words.yaml`: `build.rs` prints each list as a constant.

include!(concat!(env!("OUT_DIR"), "/words.rs"));
