//! `cipherlane enc` by a device that is wrong, or that hangs.

use crate::place::{HEX, IV, Place, data, refused, run};

/// A model of a device with a fault, and a file of 48 MiB to encrypt.
fn rig(fault: &str) -> Place {
    let place = Place::new();
    let device = include_str!("../../../dma-model/src/presets/pcie-modern.toml");
    let device = format!("{device}\n[behaviour]\nfaults = [{fault}]\n");
    place.write("device.toml", device);
    let settings = "verify = 1\n[drivers.dma]\ntimeout_ms = 50\n";
    place.write("settings.toml", settings);
    place.write("in", data(48 << 20));
    place
}

fn by_device(place: &Place) -> String {
    let device = place.path("device.toml");
    let key = &HEX[..32];
    format!(
        "--config settings.toml --driver dma:{} enc -aes-128-ctr -K {key} -iv {IV} -in in",
        device.display()
    )
}

#[test]
fn a_file_is_not_written_after_a_wrong_result() {
    // The self-test has fewer than 200 requests, and passes.
    for after in [200, 201, 220] {
        let place = rig(&format!("{{kind = \"wrong-result\", after = {after}}}"));
        let line = by_device(&place);
        let words = ["driver 'dma:", "wrong result", "not written"];
        refused(
            &mut place.cipherlane(&format!("{line} -out out")),
            1,
            &words,
        );
        refused(&mut place.cipherlane(&line), 1, &words);
        assert_eq!(place.names(), ["device.toml", "in", "settings.toml"]);
    }
}

#[test]
fn letting_auto_use_a_device_is_said_to_have_no_effect() {
    let place = Place::new();
    place.write("in", data(1000));
    let key = &HEX[..32];
    let line = format!("--auto dma:am335x enc -aes-128-ctr -K {key} -iv {IV} -in in -out out");
    let output = run(&mut place.cipherlane(&line), 0);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--auto has no effect on enc"), "{said}");
    assert!(said.contains("--driver"), "{said}");
}

#[test]
fn software_goes_on_when_a_device_hangs_and_says_so_once() {
    let place = rig("{kind = \"hang\", after = 200, count = 100000}");
    let output = run(
        &mut place.cipherlane(&format!("{} -out out", by_device(&place))),
        0,
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    assert!(said.contains("software"), "{said}");
    let key = &HEX[..32];
    let line = format!("enc -aes-128-ctr -K {key} -iv {IV} -in in -out expected");
    run(&mut place.openssl(&line), 0);
    let read = |name| std::fs::read(place.path(name)).unwrap();
    assert!(read("out") == read("expected"));
}
