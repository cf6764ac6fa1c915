//! The choice of an implementation: the key says for which one it was expanded, and proves by the
//! token of its instructions that this processor has it.

/// The function of this name of an x86-64 tier, or what is portable.
macro_rules! by_key {
    ($by:expr, $function:ident($($arg:expr),*), _ => $portable:expr) => {
        match $by {
            $crate::gcm::key::Implementation::Portable => $crate::wipe::on_portable(|| $portable),
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::Bare(token) => {
                $crate::x86_64::gcm_bare::$function(token, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::AesNi(token) => {
                $crate::x86_64::gcm::x128::$function(token, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::Vaes(token) => {
                $crate::x86_64::gcm::x256::$function(token, $($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            $crate::gcm::key::Implementation::Vaes512(token) => {
                $crate::x86_64::gcm::x512::$function(token, $($arg),*)
            }
        }
    };
}
pub(super) use by_key;
