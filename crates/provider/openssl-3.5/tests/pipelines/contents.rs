//! Messages, and what the two ways make of them.

use openssl_3_5::message::Message;
use openssl_3_5::pipeline::Pipeline;
use openssl_3_5::{Cipher, Refused};

pub(crate) const CIPHERS: [&str; 10] = [
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
    "AES-128-GCM",
    "AES-192-GCM",
    "AES-256-GCM",
    "ChaCha20-Poly1305",
];

pub(crate) fn is_aead(name: &str) -> bool {
    name.ends_with("GCM") || name.starts_with("ChaCha")
}

pub(crate) fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i * 167 + i / 199 + seed * 41) as u8)
        .collect()
}

/// What one pipe is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) iv: Vec<u8>,
    pub(crate) aad: Vec<Vec<u8>>,
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Decrypting an AEAD: the tag to expect.
    pub(crate) tag: Vec<u8>,
}

/// What came of one pipe: its output, and, encrypting with an AEAD, its tag.
pub(crate) type Outcome = (Vec<u8>, Option<[u8; 16]>);

/// How messages are done, beside what they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) encrypt: bool,
    pub(crate) aead: bool,
    pub(crate) padding: bool,
    /// Where in one buffer the input and the output stand; `None` if each has its own.
    pub(crate) within: Option<(usize, usize)>,
}

/// A message by itself.
pub(crate) fn single(
    cipher: &Cipher,
    key: &[u8],
    manner: Manner,
    content: &Content,
) -> Result<Outcome, Refused> {
    let mut message = Message::new(cipher, manner.encrypt, key)?;
    if manner.aead {
        message.set_iv_len(content.iv.len())?;
    }
    message.set_padding(manner.padding);
    message.begin(&content.iv)?;
    for aad in &content.aad {
        message.aad(aad)?;
    }
    let mut output = Vec::new();
    for piece in &content.pieces {
        let mut room = vec![0; piece.len() + 16];
        let written = message.update(piece, &mut room)?;
        output.extend_from_slice(&room[..written]);
    }
    if manner.aead && !manner.encrypt {
        message.set_tag(&content.tag)?;
    }
    output.extend(message.finish()?);
    let mut tag = [0; 16];
    let tagged = manner.aead && manner.encrypt;
    if tagged {
        message.tag(&mut tag)?;
    }
    Ok((output, tagged.then_some(tag)))
}

/// All of them together, the context copied before piece `copy_at`.
pub(crate) fn together(
    pipeline: &mut Pipeline,
    manner: Manner,
    contents: &[Content],
    copy_at: usize,
) -> Result<Vec<Outcome>, Refused> {
    let mut outputs = vec![Vec::new(); contents.len()];
    let all = |part: fn(&Content) -> &[Vec<u8>], i: usize| -> Vec<&[u8]> {
        let each = contents.iter().map(part);
        each.map(|parts| parts.get(i).map_or(&[][..], |part| part))
            .collect()
    };
    let most = |part: fn(&Content) -> &[Vec<u8>]| {
        contents
            .iter()
            .map(|content| part(content).len())
            .max()
            .unwrap_or(0)
    };
    pipeline.set_padding(manner.padding);
    for i in 0..most(|content| &content.aad) {
        pipeline.aad(&all(|content| &content.aad, i))?;
    }
    for i in 0..most(|content| &content.pieces) {
        if i == copy_at {
            *pipeline = pipeline.duplicate();
        }
        let pieces = all(|content| &content.pieces, i);
        let mut rooms: Vec<_> = pieces
            .iter()
            .map(|piece| vec![0; piece.len() + 16])
            .collect();
        let to = manner.within.map_or(0, |(_, to)| to);
        let written = match manner.within {
            Some((from, to)) => {
                let lens: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
                for (room, piece) in rooms.iter_mut().zip(&pieces) {
                    room.resize(from.max(to) + piece.len() + 16, 0);
                    room[from..][..piece.len()].copy_from_slice(piece);
                }
                let rooms = rooms.iter_mut().map(|room| &mut room[..]);
                pipeline.update_within(rooms, &lens, (from, to))?
            }
            None => pipeline.update(&pieces, rooms.iter_mut().map(|room| &mut room[..]))?,
        };
        for ((output, room), &written) in outputs.iter_mut().zip(&rooms).zip(written) {
            output.extend_from_slice(&room[to..][..written]);
        }
    }
    if manner.aead && !manner.encrypt {
        let tags: Vec<_> = contents.iter().map(|content| &content.tag[..]).collect();
        pipeline.set_tags(&tags)?;
    }
    let mut rooms = vec![[0; 16]; contents.len()];
    let written = pipeline.finish(rooms.iter_mut().map(|room| &mut room[..]))?;
    for ((output, room), &written) in outputs.iter_mut().zip(&rooms).zip(written) {
        output.extend_from_slice(&room[..written]);
    }
    let tagged = manner.aead && manner.encrypt;
    let mut tags = vec![[0; 16]; contents.len()];
    if tagged {
        pipeline.tags(tags.iter_mut().map(|tag| &mut tag[..]))?;
    }
    let tags = tags.into_iter().map(|tag| tagged.then_some(tag));
    Ok(outputs.into_iter().zip(tags).collect())
}
