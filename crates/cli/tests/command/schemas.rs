//! Every JSON document has the form that docs/schemas/ describes.

use std::process::Command;

use serde_json::Value;

use crate::place::{HEX, IV, Place, run};
use crate::schema::{check, judge};

#[track_caller]
fn printed(name: &str, command: &mut Command) {
    judge(name, &run(command, 0).stdout);
}

#[test]
fn every_document_has_the_form_that_is_described() {
    let place = Place::new();
    place.write("in", "text");
    let device = "am335x";
    let key = &HEX[..32];
    let rsp = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/nist-cavp/CBCGFSbox128.rsp"
    );
    for (name, line) in [
        ("drivers", "drivers".to_owned()),
        ("calibrate", "calibrate ecb --seconds 0.02".to_owned()),
        ("why", "why ecb 64 --auto openssl".to_owned()),
        ("doctor", "doctor --seconds 0.1".to_owned()),
        ("why", format!("why cbc 64K --submit --auto dma:{device}")),
        (
            "speed",
            "speed ecb --sizes 64,1K --batch 1,2 --submit 0,2 --pause 0,50 --seconds 0.002"
                .to_owned(),
        ),
        (
            "plan",
            format!("plan --device {device} --workload imix --seconds 0.002"),
        ),
        (
            "esp-perf",
            "esp-perf --size 64 --threads 1 --multipacket 1 --seconds 0.002".to_owned(),
        ),
        (
            "enc",
            format!("enc -aes-128-ctr -K {key} -iv {IV} -in in -out out"),
        ),
        ("check", format!("check {rsp}")),
    ] {
        printed(name, &mut place.cipherlane(&format!("{line} --json")));
    }
}

#[test]
fn what_has_another_form_is_found() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "one": { "type": ["integer", "null"] },
            "list": { "type": "array", "items": { "enum": ["a", "b"] } },
        },
        "required": ["one"],
    });
    let wrong = |value: Value| {
        let mut wrong = Vec::new();
        check(&schema, &schema, &value, "", &mut wrong);
        wrong
    };
    assert!(wrong(serde_json::json!({ "one": 1, "list": ["a"] })).is_empty());
    assert!(wrong(serde_json::json!({ "one": null })).is_empty());
    for value in [
        serde_json::json!({ "one": "1" }),
        serde_json::json!({ "list": [] }),
        serde_json::json!({ "one": 1, "list": ["c"] }),
        serde_json::json!({ "one": 1, "two": 2 }),
        serde_json::json!([]),
    ] {
        assert_eq!(wrong(value.clone()).len(), 1, "{value}");
    }
}
