//! The calls for one message: what they do, and what they refuse by name.

mod common;

use cipherlane_core::{Batch, Direction, Error, OwnedRequest, Payload, Session, Status};
use common::shared_framework;

fn session(algorithm: &str, key_len: usize) -> Session {
    let key: Vec<u8> = (0..key_len as u8).collect();
    let framework = shared_framework();
    framework.session(algorithm, &key).unwrap().open().unwrap()
}

#[test]
fn an_aead_seals_and_opens() {
    for (algorithm, key_len) in [("gcm(aes)", 16), ("rfc7539(chacha20,poly1305)", 32)] {
        let session = session(algorithm, key_len);
        let (mut data, mut tag) = (*b"attack at dawn", [0; 16]);
        session.seal(&[1; 12], b"aad", &mut data, &mut tag).unwrap();
        assert_ne!(&data, b"attack at dawn");
        let mut opened = data;
        session.open(&[1; 12], b"aad", &mut opened, &tag).unwrap();
        assert_eq!(&opened, b"attack at dawn");

        let mut forged = data;
        let refused = session.open(&[1; 12], b"add", &mut forged, &tag);
        assert!(matches!(refused, Err(Error::BadTag { .. })), "{refused:?}");
        assert_eq!(forged, [0; 14]);
    }
}

#[test]
fn ciphers_and_macs_have_calls_of_their_own() {
    let counter = session("ctr(aes)", 16);
    let mut data = [7; 50];
    counter.apply(&[1; 16], &mut data).unwrap();
    counter.apply(&[1; 16], &mut data).unwrap();
    assert_eq!(data, [7; 50]);

    let chained = session("cbc(aes)", 32);
    let mut data = [7; 48];
    chained.encrypt(&[1; 16], &mut data).unwrap();
    chained.decrypt(&[1; 16], &mut data).unwrap();
    assert_eq!(data, [7; 48]);

    let mac = session("hmac(sha256)", 32);
    let mut tag = [0; 32];
    mac.mac(b"message", &mut tag).unwrap();
    mac.verify(b"message", &tag).unwrap();
    let refused = mac.verify(b"massage", &tag);
    assert!(matches!(refused, Err(Error::BadTag { .. })), "{refused:?}");
}

/// Above all, nothing is 'opened' that has no tag.
#[test]
fn a_call_that_the_algorithm_does_not_have_is_refused() {
    let refused = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::WrongCall { .. })), "{result:?}");
    };
    let counter = session("ctr(aes)", 16);
    refused(counter.open(&[1; 16], b"", &mut [0; 16], &[]));
    refused(counter.seal(&[1; 16], b"", &mut [0; 16], &mut []));
    refused(counter.verify(b"", &[]));
    let chained = session("cbc(aes)", 16);
    refused(chained.apply(&[1; 16], &mut [0; 16]));
    let aead = session("gcm(aes)", 16);
    refused(aead.encrypt(&[1; 12], &mut [0; 16]));
    refused(aead.apply(&[1; 12], &mut [0; 16]));
    refused(aead.mac(b"", &mut [0; 16]));
    let words = aead.decrypt(&[1; 12], &mut []).unwrap_err().to_string();
    assert_eq!(
        words,
        "gcm(aes) has no 'decrypt'; its calls are seal and open"
    );
}

#[test]
fn lengths_that_are_wrong_are_named() {
    let aead = session("gcm(aes)", 16);
    for len in [0, 15, 17, 65, 300] {
        let opened = aead.open(&[1; 12], b"", &mut [0; 16], &vec![0; len]);
        let right = matches!(&opened, Err(Error::TagLength { given, .. }) if *given == len);
        assert!(right, "{len}: {opened:?}");
    }
    let sealed = aead.seal(&[1; 11], b"", &mut [0; 16], &mut [0; 16]);
    assert!(matches!(sealed, Err(Error::IvLength { given: 11, .. })));
}

#[test]
fn clones_are_one_session_until_the_last_is_gone() {
    let session = session("ctr(aes)", 16);
    let clone = session.clone();
    let mut batch = Batch::new(Direction::Encrypt);
    let payload = Payload::InPlace(vec![0; 64]);
    batch.push(OwnedRequest::new(payload).iv(vec![1; 16]));
    let ticket = session.submit(&mut batch).unwrap();
    drop(session);
    assert_eq!(ticket.wait().requests()[0].status(), Status::Done);
    let users = (0..4).map(|_| clone.clone()).collect::<Vec<_>>();
    let threads = users
        .into_iter()
        .map(|session| std::thread::spawn(move || session.apply(&[1; 16], &mut [0; 100])));
    let threads: Vec<_> = threads.collect();
    clone.close();
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn a_batch_serves_the_other_direction() {
    let session = session("gcm(aes)", 16);
    let text = b"attack at dawn".to_vec();
    let payloads = [
        Payload::InPlace(text.clone()),
        Payload::Copy {
            input: text.clone(),
            output: vec![0; text.len()],
        },
        Payload::Scatter {
            input: vec![text[..3].to_vec(), text[3..].to_vec()],
            output: vec![vec![0; 10], vec![0; 4]],
        },
    ];
    let mut batch = Batch::new(Direction::Encrypt);
    for (number, payload) in payloads.into_iter().enumerate() {
        let request = OwnedRequest::new(payload).iv(vec![number as u8; 12]);
        batch.push(request.tag(vec![0; 16]));
    }
    let mut sealed = session.submit(&mut batch).unwrap().wait().reversed();
    assert_eq!(sealed.direction(), Direction::Decrypt);
    let opened = session.submit(&mut sealed).unwrap().wait();
    for request in opened.requests() {
        assert_eq!(request.status(), Status::Done);
        let output = match &request.payload {
            Payload::InPlace(data) => data.clone(),
            Payload::Copy { output, .. } => output.clone(),
            Payload::Scatter { output, .. } => output.concat(),
            other => unreachable!("{other:?}"),
        };
        assert_eq!(output, text);
    }
}
