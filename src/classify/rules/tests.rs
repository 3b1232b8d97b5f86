use super::dialect::Document;
use super::{compile, read};
use crate::classify::Classifier;
use crate::classify::tests::evaluation::{context, policy};
use crate::error::{Code, Error};

fn document() -> Document {
    match read(include_str!("../../../config/rules.yaml")) {
        Ok(document) => document,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_embedded_table_compiles() {
    if let Err(error) = compile(vec![document()]) {
        panic!("{error}");
    }
}
