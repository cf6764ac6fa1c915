//! Calls in any order, with any lengths and null pointers: what the default provider
//! refuses is refused, what it takes is taken, and nothing crashes.

use proptest::prelude::*;

use crate::libcrypto::{Context, DEFAULT, Done, OURS, Refused};

const CIPHERS: [&str; 10] = [
    "AES-128-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC-CTS",
    "AES-128-CTR",
    "AES-128-GCM",
    "AES-256-GCM",
    "ChaCha20-Poly1305",
    "AES-128-XTS",
];

#[derive(Clone, Debug)]
enum Call {
    Init {
        encrypt: bool,
        key: bool,
        iv: bool,
    },
    Update(usize),
    UpdateInPlace(usize),
    UpdateWithNothing {
        output: bool,
    },
    Aad(usize),
    Finish,
    /// `EVP_Cipher`, without input for its end.
    Once(Option<usize>),
    Tag(usize),
    SetTag(usize),
    SetTagLength(usize),
    IvLength(usize),
    KeyLength(usize),
    /// As a parameter, of which EVP has no opinion.
    KeyLengthParameter(usize),
    Number(usize),
    Padding(bool),
    FixedIv(usize),
    Header {
        len: usize,
        says: u16,
    },
    UpdatedIv,
    Duplicate,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let len = || prop_oneof![Just(0usize), 1..20usize, Just(16), Just(32), 0..700usize];
    let call = prop_oneof![
        4 => (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(encrypt, key, iv)| Call::Init { encrypt, key, iv }),
        6 => len().prop_map(Call::Update),
        2 => len().prop_map(Call::UpdateInPlace),
        1 => any::<bool>().prop_map(|output| Call::UpdateWithNothing { output }),
        2 => len().prop_map(Call::Aad),
        4 => Just(Call::Finish),
        1 => prop::option::of(len()).prop_map(Call::Once),
        2 => (0..20usize).prop_map(Call::Tag),
        3 => (0..20usize).prop_map(Call::SetTag),
        1 => (0..20usize).prop_map(Call::SetTagLength),
        1 => prop_oneof![0..20usize, 120..140usize, Just(12)].prop_map(Call::IvLength),
        1 => prop_oneof![0..70usize, Just(16), Just(32)].prop_map(Call::KeyLength),
        1 => prop_oneof![0..70usize, Just(16), Just(32)].prop_map(Call::KeyLengthParameter),
        1 => (0..20usize).prop_map(Call::Number),
        1 => any::<bool>().prop_map(Call::Padding),
        1 => prop_oneof![0..20usize, Just(12)].prop_map(Call::FixedIv),
        1 => (prop_oneof![0..20usize, Just(13)], 0..80u16)
            .prop_map(|(len, says)| Call::Header { len, says }),
        1 => Just(Call::UpdatedIv),
        1 => Just(Call::Duplicate),
    ];
    prop::collection::vec(call, 0..24)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 73 + len) as u8).collect()
}

fn nothing(done: Result<(), Refused>) -> Done {
    done.map(|()| Vec::new())
}

/// Keys and IVs are longer than any length that is taken.
fn make(context: &mut Context, call: &Call) -> Done {
    match *call {
        Call::Init { encrypt, key, iv } => {
            let (some_key, some_iv) = (bytes(256), bytes(257));
            let key = key.then_some(&some_key[..]);
            nothing(context.init(encrypt, key, iv.then_some(&some_iv[..])))
        }
        Call::Update(len) => context.update(&bytes(len)),
        Call::UpdateInPlace(len) => context.update_in_place(&bytes(len)),
        Call::UpdateWithNothing { output } => context.update_with_nothing(output),
        Call::Aad(len) => nothing(context.aad(&bytes(len))),
        Call::Finish => context.finish(),
        Call::Once(len) => context.once(len.map(bytes).as_deref()),
        Call::Tag(len) => context.tag(len),
        Call::SetTag(len) => nothing(context.set_tag(&bytes(len))),
        Call::SetTagLength(len) => nothing(context.set_tag_length(len)),
        Call::IvLength(len) => nothing(context.set_iv_length(len)),
        Call::KeyLength(len) => nothing(context.set_key_length(len)),
        Call::KeyLengthParameter(len) => nothing(context.set_number(c"keylen", len)),
        Call::Number(number) => nothing(context.set_number(c"num", number)),
        Call::Padding(on) => nothing(context.set_number(c"padding", on.into())),
        Call::FixedIv(len) => nothing(context.set_fixed_iv(&bytes(len))),
        Call::Header { len, says } => {
            let mut header = bytes(len);
            if let Some(end) = header.get_mut(11..13) {
                end.copy_from_slice(&says.to_be_bytes());
            }
            nothing(context.announce(&header))
        }
        Call::UpdatedIv => context.updated_iv(16),
        Call::Duplicate => {
            *context = context.duplicate();
            Ok(Vec::new())
        }
    }
}

/// What a context has had, as far as the two providers differ on it.
#[derive(Default)]
struct Past {
    begun: bool,
    encrypt: bool,
    key: bool,
    iv: bool,
    in_data: bool,
    /// Data since the key or the IV was given.
    data: usize,
    /// A message was begun, and under another key.
    open: bool,
    stale: bool,
    /// There were records of TLS, and one is to come.
    records: bool,
    announced: bool,
    tag_set: bool,
    /// The end of a message was refused: what comes then, until the next begins, is garbage.
    refused: bool,
    /// Encrypted without an IV: GCM took a random one.
    random: bool,
}

impl Past {
    /// Whether the default provider would crash, or go on with a key of the other direction.
    fn leaves_out(&self, name: &str, call: &Call) -> bool {
        let aead = name.ends_with("GCM") || name.starts_with("ChaCha");
        let blocks = name.contains("CBC") || name.ends_with("ECB");
        match *call {
            Call::Init {
                key: true,
                iv: true,
                ..
            } => false,
            _ if self.refused => true,
            Call::Init { encrypt, .. } => self.begun && encrypt != self.encrypt,
            // A record is one call; what it makes of others, or under the nonce of the last
            // record, is nothing that anybody opens.
            Call::Aad(_) | Call::Finish | Call::Once(None) if self.records => true,
            Call::Update(_) | Call::UpdateInPlace(_) | Call::Once(_) if self.records => {
                !self.announced
            }
            // It looks for a key in ECB, CBC and CTR alone.
            Call::Update(_) | Call::UpdateInPlace(_) | Call::Once(Some(_))
                if name.ends_with("CTS") && !self.key =>
            {
                true
            }
            // A copy without a key takes itself for one with a key.
            Call::Update(_) | Call::UpdateInPlace(_) | Call::Once(_) | Call::Aad(_)
                if name.ends_with("XTS") && !self.key =>
            {
                true
            }
            // It refuses the tag, and keeps it.
            Call::SetTag(_) => name.ends_with("GCM") && self.encrypt,
            // It overwrites input that it has not read.
            Call::UpdateInPlace(_) if blocks && self.data > 0 => true,
            // It works on whole blocks whatever the length.
            Call::Once(len) => {
                blocks && (len.is_none() || len.is_some_and(|len| len % 16 > 0))
                    || name.ends_with("CTR") && len.is_none()
            }
            // It writes to the null pointer.
            Call::Aad(_) => !aead && !name.ends_with("XTS"),
            // Records of TLS by GCM begin with random bytes.
            Call::FixedIv(_) | Call::Header { .. } if !name.starts_with("ChaCha") => true,
            // It goes on under it in the middle of a message.
            Call::FixedIv(_) => self.open,
            _ => false,
        }
    }

    /// Whether the provider refuses on purpose what the default one takes.
    fn is_stricter(&self, name: &str, call: &Call) -> bool {
        match call {
            // It would use a key or a nonce of zeros.
            Call::Update(_)
            | Call::UpdateInPlace(_)
            | Call::Aad(_)
            | Call::Finish
            | Call::Once(_)
                if name.starts_with("ChaCha") && !(self.key && self.iv) =>
            {
                true
            }
            // It would go on with a counter of zeros.
            Call::Update(_)
            | Call::UpdateInPlace(_)
            | Call::Aad(_)
            | Call::Finish
            | Call::Once(_)
                if name.ends_with("GCM") && self.stale =>
            {
                true
            }
            // It would take no tag for the right one.
            Call::Finish if name.starts_with("ChaCha") => !self.encrypt && !self.tag_set,
            // It would give zeros for a tag.
            Call::Tag(_) => name.starts_with("ChaCha"),
            // Beyond a block it is refused from OpenSSL 3.0.20 on.
            Call::Number(_) => true,
            // Its tag would be of no use.
            Call::Aad(_) | Call::Once(_) => name.starts_with("ChaCha") && self.in_data,
            _ => false,
        }
    }

    fn note(&mut self, call: &Call, done: &Done) {
        match *call {
            Call::Init { encrypt, key, iv } if done.is_ok() => {
                self.begun = true;
                self.encrypt = encrypt;
                self.key |= key;
                self.iv |= iv;
                self.stale = !iv && (self.stale || key && self.open);
                self.open &= !iv;
                self.announced &= !(key || iv);
                self.records &= !iv;
                if key && iv {
                    (self.in_data, self.data, self.refused) = (false, 0, false);
                }
            }
            Call::Update(len) | Call::UpdateInPlace(len) | Call::Once(Some(len)) => {
                self.in_data |= len > 0;
                self.open |= len > 0;
                self.announced &= done.is_err() || len == 0;
                self.data += len;
            }
            Call::Aad(len) => self.open |= len > 0,
            Call::Finish | Call::Once(None) => {
                (self.in_data, self.data) = (false, 0);
                self.refused |= done.is_err();
            }
            Call::Header { .. } => {
                self.announced |= done.is_ok();
                self.records |= done.is_ok();
            }
            Call::FixedIv(_) => self.iv |= done.is_ok(),
            Call::SetTag(_) => self.tag_set |= done.is_ok(),
            _ => {}
        }
        self.random |= !self.iv;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1000)))]

    #[test]
    fn any_order_is_as_with_the_default_provider(which in 0..CIPHERS.len(), calls in calls()) {
        let name = CIPHERS[which];
        let mut our_context = OURS.cipher(name).context();
        let mut default_context = DEFAULT.cipher(name).context();
        let mut past = Past { encrypt: true, ..Past::default() };
        for (i, call) in calls.iter().enumerate() {
            if past.leaves_out(name, call) {
                continue;
            }
            let our_done = make(&mut our_context, call);
            let default_done = make(&mut default_context, call);
            if our_done.is_err() && default_done.is_ok() && past.is_stricter(name, call) {
                break;
            }
            let case = || format!("{name} {i} {calls:?}: {our_done:?} {default_done:?}");
            prop_assert_eq!(our_done.is_ok(), default_done.is_ok(), "{}", case());
            if !(name.ends_with("GCM") && past.random) {
                prop_assert_eq!(our_done.as_ref().ok(), default_done.as_ref().ok(), "{}", case());
            }
            past.note(call, &our_done);
        }
    }
}

proptest! {
    /// With the calls too that crash the default provider.
    #[test]
    fn nothing_crashes(which in 0..CIPHERS.len(), calls in calls()) {
        let mut context = OURS.cipher(CIPHERS[which]).context();
        for call in &calls {
            let done = make(&mut context, call);
            if let Err(Refused(words)) = done {
                prop_assert!(!words.contains("internal error"), "{:?}", call);
            }
        }
    }
}
