//! The published packets, sealed bit for bit with their IVs.

use cipherlane_drivers::framework;
use cipherlane_kernels::kuznyechik::KuznyechikKey;
use cipherlane_kernels::magma::MagmaKey;
use serde_json::Value;

use super::{Imit, Mgm};
use crate::protection::Protection;
use crate::{GostSbox, Keys, Packet, SaParameters, Suite};

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// A packet with its number and where its payload ends, and the first half of its IV.
fn seal(sa: &Imit, packet: &[u8], sequence: u64, plaintext: &[u8]) -> Vec<u8> {
    let random = packet[8..12].try_into().unwrap();
    let mut buffer = packet.to_vec();
    buffer[8..16].fill(0xee);
    let end = buffer.len() - sa.layout().icv;
    buffer[16..end].copy_from_slice(plaintext);
    buffer[end..].fill(0xee);
    let len = buffer.len();
    let mut sealed = [Packet::new(&mut buffer, 0..len)];
    sealed[0].set_sequence(sequence);
    sa.seal_with_ivs(&mut sealed, [random].iter());
    buffer
}

fn sa(vector: &Value, root: &Value, sbox: GostSbox) -> Imit {
    let framework = framework(cipherlane_core::Config::default()).unwrap();
    let mut keymat = bytes(&root["Kr_e"]);
    let one_kilobyte = vector["transform"] == "ESP_GOST-1K-IMIT";
    if one_kilobyte {
        keymat.extend(bytes(&root["Kr_i"]));
    }
    keymat.extend(bytes(&root["spi_auth_code"]));
    let spi = u32::from_str_radix(vector["spi"].as_str().unwrap(), 16).unwrap();
    let suite = Suite::Gost4mImit(sbox);
    let mut parameters = SaParameters::new(spi, suite, Keys::combined(&keymat));
    parameters.esn = vector["esn"].as_bool().unwrap();
    match one_kilobyte {
        false => Imit::four_megabytes(&framework, &parameters, sbox).unwrap(),
        true => Imit::one_kilobyte(&framework, &parameters, sbox).unwrap(),
    }
}

#[test]
fn the_examples_of_the_draft() {
    let text = include_str!("../../../../../vectors/gost/esp-gost-draft04.json");
    let file: Value = serde_json::from_str(text).unwrap();
    for vector in file["vectors"].as_array().unwrap() {
        let sa = sa(vector, vector, GostSbox::CryptoProB);
        let plaintext = [bytes(&vector["plaintext"]), bytes(&vector["trailer"])].concat();
        let (packet, sequence) = (bytes(&vector["packet"]), vector["seq"].as_u64().unwrap());
        for _ in 0..2 {
            // The second time with keys that were kept.
            assert_eq!(seal(&sa, &packet, sequence, &plaintext), packet);
        }
    }
}

#[test]
fn the_derived_packets() {
    let text = include_str!("../../../../../vectors/gost/esp-gost-derived.json");
    let file: Value = serde_json::from_str(text).unwrap();
    for vector in file["vectors"].as_array().unwrap() {
        let sbox = match vector["sbox"].as_str().unwrap() {
            "A" => GostSbox::CryptoProA,
            "B" => GostSbox::CryptoProB,
            "C" => GostSbox::CryptoProC,
            "D" => GostSbox::CryptoProD,
            "Z" => GostSbox::ParamZ,
            other => panic!("no S-box {other}"),
        };
        let sa = sa(vector, &file, sbox);
        let mut plaintext = bytes(&vector["payload"]);
        let pad = crate::trailer::pad_len(plaintext.len(), 8);
        let payload = plaintext.len();
        plaintext.resize(payload + pad + 2, 0);
        let next_header = vector["next_header"].as_u64().unwrap() as u8;
        crate::trailer::write(&mut plaintext[payload..], pad, next_header);
        let (packet, sequence) = (bytes(&vector["packet"]), vector["seq"].as_u64().unwrap());
        assert_eq!(seal(&sa, &packet, sequence, &plaintext), packet, "{vector}");
    }
}

/// A published packet of RFC 9227 sealed again, from its plaintext and its IV.
fn seal_mgm<K>(sa: &Mgm<K>, packet: &[u8], plaintext: &[u8]) -> Vec<u8>
where
    K: super::mgm::Cipher,
{
    let mut buffer = packet.to_vec();
    let end = buffer.len() - sa.layout().icv;
    if !plaintext.is_empty() {
        buffer[16..end].copy_from_slice(plaintext);
    }
    buffer[end..].fill(0xee);
    let len = buffer.len();
    let mut sealed = [Packet::new(&mut buffer, 0..len)];
    sealed[0].set_sequence(u32::from_be_bytes(packet[4..8].try_into().unwrap()).into());
    sa.seal_with_ivs(&mut sealed);
    buffer
}

#[test]
fn the_examples_of_rfc_9227() {
    let text = include_str!("../../../../../vectors/gost/rfc9227.json");
    let file: Value = serde_json::from_str(text).unwrap();
    for vector in file["vectors"].as_array().unwrap() {
        // Behind an IPv4 header of 20 bytes.
        let packet = bytes(&vector["ESP_packet"]).split_off(20);
        let plaintext = bytes(&vector["plaintext"]);
        let keys = Keys::combined(&bytes(&vector["transform_key"]));
        let mut parameters = SaParameters::new(256, Suite::MagmaMgm, keys);
        parameters.esn = false;
        let name = vector["transform"].as_str().unwrap();
        let encrypts = !name.contains("_MAC_");
        let sealed = match name.contains("MAGMA") {
            true => {
                let sa = Mgm::<MagmaKey>::new(&parameters, encrypts).unwrap();
                seal_mgm(&sa, &packet, &plaintext)
            }
            false => {
                let sa = Mgm::<KuznyechikKey>::new(&parameters, encrypts).unwrap();
                seal_mgm(&sa, &packet, &plaintext)
            }
        };
        assert_eq!(sealed, packet, "{name}");
    }
}
