//! The operations of the project's own driver, sound and hostile.

use super::tests::guest;
use super::*;

const AES_CBC: u32 = 1;
const AES_CTR: u32 = 2;
const AES_GCM: u32 = 4;
const ESP_GCM: u32 = 5;
const AUTHENC: u32 = 9;

/// GCM specification (McGrew, Viega), test case 4.
const KEY: u128 = 0xfeffe9928665731c6d6a8f9467308308;
const IV: &str = "cafebabefacedbaddecaf888";
const AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
const PLAIN: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
const CIPHER: &str = "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091";
const TAG: &str = "5bc94fbc3221a5db94fae95ae7121a47";

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// A run of requests, each with its description and what is read for it.
fn run(requests: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (descriptions, inputs): (Vec<_>, Vec<_>) = requests.iter().cloned().unzip();
    let rest = [descriptions.concat(), inputs.concat()].concat();
    header(4, &[0, 0, 0, 0, requests.len() as u32], &rest)
}

fn seal(session: u32) -> (Vec<u8>, Vec<u8>) {
    let described = describe(session, [0, 12, 16, 0], 20, 60, &hex(IV));
    (described, [hex(AAD), hex(PLAIN)].concat())
}

fn open(session: u32, tag: &str) -> (Vec<u8>, Vec<u8>) {
    let described = describe(session, [1, 12, 16, 0], 20, 60, &hex(IV));
    (described, [hex(AAD), hex(CIPHER), hex(tag)].concat())
}

fn guest_with_gcm() -> Guest {
    let mut guest = guest();
    assert_eq!(guest.open_private(7, AES_GCM, &KEY.to_be_bytes(), 16), 0);
    guest
}

#[test]
fn a_hello_tells_what_there_is_and_closes_all_sessions() {
    let mut guest = guest_with_gcm();
    let place = guest.put_private(&header(1, &[], &[]), 40);
    guest.kick();
    let (status, answer) = guest.result(place, 40);
    assert_eq!(status, 0);
    assert_eq!(&answer[..8], b"clvcrypt");
    let word = |at: usize| u32::from_le_bytes(*answer[at..].first_chunk().unwrap());
    assert_eq!((word(8), word(12), word(16), word(20)), (1, 64, 4 << 20, 8));
    assert_eq!(word(24), 0b10_0011_1111);
    assert_eq!(guest.status().sessions, 0);
    let place = guest.put_private(&run(&[seal(7)]), 77);
    guest.kick();
    assert_eq!(guest.result(place, 77).1[76], 4, "the session is unknown");
}

#[test]
fn who_says_when_is_told_then_alone_and_others_always() {
    let mut guest = guest();
    let is_told = |guest: &mut Guest, says_when: u32, used_event: u16| {
        guest.was_told();
        guest.set_used_event(used_event);
        guest.put_private(&header(1, &[0, 0, 0, 0, 0, says_when], &[]), 40);
        guest.kick();
        guest.was_told()
    };
    let (never, used) = (100, guest.used());
    assert!(is_told(&mut guest, 0, never));
    assert!(!is_told(&mut guest, 1, never));
    assert!(is_told(&mut guest, 1, used + 2));
    assert!(!is_told(&mut guest, 1, used + 4));
    assert!(is_told(&mut guest, 1, used + 4));
    assert!(is_told(&mut guest, 0, never));
    assert_eq!(guest.used(), used + 6);
}

#[test]
fn requests_of_a_chain_are_done_together_and_each_has_its_status() {
    let mut guest = guest_with_gcm();
    let wrong = "6bc94fbc3221a5db94fae95ae7121a47";
    let requests = [seal(7), open(7, TAG), open(7, wrong), seal(8), seal(7)];
    let place = guest.put_private(&run(&requests), 76 + 60 + 60 + 76 + 76 + 5);
    guest.kick();
    let (status, output) = guest.result(place, 353);
    assert_eq!(status, 0);
    let sealed = [hex(CIPHER), hex(TAG)].concat();
    assert_eq!(output[..76], sealed);
    assert_eq!(output[76..136], hex(PLAIN));
    assert_eq!(
        output[136..272],
        [0xee; 136],
        "nothing is written for these"
    );
    assert_eq!(output[272..348], sealed);
    assert_eq!(output[348..], [0, 0, 2, 4, 0]);
    let status = guest.status();
    assert_eq!(status.calls, 2, "one call for each direction");
    assert_eq!((status.requests, status.bytes), (3, 180));
    assert_eq!(status.refused["bad tag"], 1);
    assert_eq!(status.refused["unknown session"], 1);
}

#[test]
fn a_key_serves_requests_behind_it_in_the_same_batch_and_none_behind_its_end() {
    let mut guest = guest();
    let words = [7, AES_GCM, 16, 16];
    let key = guest.put_private(&header(2, &words, &KEY.to_be_bytes()), 0);
    let one = guest.put_private(&run(&[seal(7)]), 77);
    let end = guest.put_private(&header(3, &[7], &[]), 0);
    let other = guest.put_private(&run(&[seal(7)]), 77);
    guest.kick();
    assert_eq!(guest.used(), 4);
    assert_eq!((guest.result(key, 0).0, guest.result(end, 0).0), (0, 0));
    assert_eq!(guest.result(one, 77).1[..60], hex(CIPHER));
    assert_eq!(guest.result(one, 77).1[76], 0);
    assert_eq!(guest.result(other, 77).1[76], 4);
}

#[test]
fn esp_skips_the_iv_behind_the_additional_data() {
    let mut guest = guest();
    // draft-mcgrew-gcm-test-01, case 1.
    let key = hex("4c80cdefbb5d10da906ac73c3613a6342e443b68");
    assert_eq!(guest.open_private(1, ESP_GCM, &key, 16), 0);
    let iv = hex("4956ed7e3b244cfe");
    let plain = hex(
        "45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f736970045f756470037369700963796265726369747902646b000021000101020201",
    );
    let input = [hex("000043218765432100000000"), iv.clone(), plain].concat();
    let described = describe(1, [0, 8, 16, 8], 12, 72, &iv);
    let place = guest.put_private(&run(&[(described, input)]), 89);
    guest.kick();
    let sealed = hex(
        "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce61bc17d768fd9732459018148f6cbe722fd04796562dfdb4",
    );
    assert_eq!(guest.result(place, 88), (0, sealed));
}

#[test]
fn authenc_and_plain_ciphers_go_there_and_back() {
    let mut guest = guest();
    let cases = [
        (AUTHENC, 48, [16, 16], 24),
        (AES_CBC, 16, [16, 0], 0),
        (AES_CTR, 32, [16, 0], 0),
    ];
    for (number, (algorithm, key, [iv, tag], aad)) in (0..).zip(cases) {
        let key = vec![9; key];
        assert_eq!(guest.open_private(number, algorithm, &key, tag.into()), 0);
        let (iv_bytes, head, plain) = ([3; 16], vec![5; aad], vec![6; 64]);
        let lens = |direction| [direction, iv, tag, 0];
        let sealed_len = 64 + usize::from(tag);
        let described = describe(number, lens(0), aad as u32, 64, &iv_bytes);
        let input = [&head[..], &plain].concat();
        let place = guest.put_private(&run(&[(described, input)]), sealed_len + 1);
        guest.kick();
        let (status, output) = guest.result(place, sealed_len + 1);
        assert_eq!((status, output[sealed_len]), (0, 0), "{algorithm}");
        assert_ne!(output[..64], plain);
        let described = describe(number, lens(1), aad as u32, 64, &iv_bytes);
        let input = [&head[..], &output[..sealed_len]].concat();
        let place = guest.put_private(&run(&[(described, input)]), 65);
        guest.kick();
        let (status, output) = guest.result(place, 65);
        assert_eq!((status, output[64]), (0, 0), "{algorithm}");
        assert_eq!(output[..64], plain);
    }
}

#[test]
fn what_cannot_be_is_refused_and_the_device_goes_on() {
    let mut guest = guest_with_gcm();
    let with = |lens, aad, len| (describe(7, lens, aad, len, &hex(IV)), vec![0; 100]);
    let sound = [0, 12, 16, 0];
    let change = |at: usize, byte: u8| {
        let mut bytes = run(&[seal(7)]);
        bytes[at] = byte;
        bytes
    };
    let cases = [
        ("no such operation", header(9, &[], &[]), 77, 3),
        ("another version", change(4, 2), 77, 3),
        ("another magic", change(8, 0), 77, 3),
        ("no requests", header(4, &[], &[]), 77, 1),
        (
            "65 requests",
            header(4, &[0, 0, 0, 0, 65], &[0; 1000]),
            77,
            1,
        ),
        ("a short hello", header(1, &[], &[]), 39, 1),
        (
            "no descriptions",
            header(4, &[0, 0, 0, 0, 2], &[0; 32]),
            77,
            1,
        ),
        ("a direction", run(&[with([2, 12, 16, 0], 0, 16)]), 77, 3),
        ("an IV of 17", run(&[with([0, 17, 16, 0], 0, 16)]), 77, 1),
        ("a tag of 65", run(&[with([0, 12, 65, 0], 0, 16)]), 200, 1),
        ("more than there is", run(&[with(sound, 0, 101)]), 200, 1),
        (
            "a gap behind the end",
            run(&[with([0, 12, 16, 99], 0, 2)]),
            77,
            1,
        ),
        ("too long", run(&[with(sound, 0, u32::MAX)]), 77, 1),
        ("too much head", run(&[with(sound, u32::MAX, 1)]), 77, 1),
        ("no room", run(&[seal(7)]), 76, 1),
        (
            "a short key",
            header(2, &[8, AES_GCM, 16, 16], &[1; 15]),
            0,
            1,
        ),
        (
            "a long key",
            header(2, &[8, AES_GCM, 65, 16], &[1; 65]),
            0,
            1,
        ),
        (
            "a wrong key",
            header(2, &[8, AES_GCM, 15, 16], &[1; 15]),
            0,
            1,
        ),
        (
            "a wrong tag",
            header(2, &[8, AES_GCM, 16, 5], &[1; 16]),
            0,
            1,
        ),
        ("an algorithm", header(2, &[8, 6, 16, 16], &[1; 16]), 0, 3),
        (
            "a number twice",
            header(2, &[7, AES_GCM, 16, 16], &[1; 16]),
            0,
            1,
        ),
    ];
    for (name, bytes, writable, status) in cases {
        let place = guest.put_private(&bytes, writable);
        guest.kick();
        assert_eq!(guest.result(place, 0).0, status, "{name}");
    }
    // Lengths that the algorithm does not take concern their own request.
    let requests = [with([0, 8, 16, 0], 0, 16), with([0, 12, 8, 0], 0, 16)];
    for request in requests {
        let tag = usize::from(request.0[6]);
        let place = guest.put_private(&run(&[request]), 16 + tag + 1);
        guest.kick();
        let (status, output) = guest.result(place, 16 + tag + 1);
        assert_eq!((status, output[16 + tag]), (0, 1));
    }
    let place = guest.put_private(&run(&[seal(7)]), 77);
    guest.kick();
    assert_eq!(
        guest.result(place, 60),
        (0, hex(CIPHER)),
        "the key of before"
    );
}

#[test]
fn sessions_of_both_kinds_share_one_limit() {
    let mut guest = guest();
    for number in 0..5 {
        assert_eq!(guest.open_private(number, AES_CTR, &[1; 16], 0), 0);
    }
    let opened = (0..5).filter(|_| guest.open(true, 3, true, &[1; 16]).is_some());
    assert_eq!(opened.count(), 3);
    assert_eq!(guest.open_private(9, AES_CTR, &[1; 16], 0), 1);
    let place = guest.put_private(&header(3, &[0], &[]), 0);
    guest.kick();
    assert_eq!(guest.result(place, 0).0, 0);
    assert_eq!(guest.open_private(9, AES_CTR, &[1; 16], 0), 0);
    assert_eq!(guest.status().sessions, 8);
}
