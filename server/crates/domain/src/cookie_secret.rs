//! Secrets in browsers' cookies: 256 random bits. The store keeps only a hash.

/// Defines the secret of one kind of cookie. Each kind is a separate type, so that one cannot be
/// used in place of another. Secrets are never logged.
macro_rules! cookie_secret {
    ($(#[$about:meta])* $secret:ident, $hash:ident) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $secret([u8; 32]);

        impl $secret {
            /// A new secret.
            #[must_use]
            pub fn generate(entropy: &dyn $crate::entropy::Entropy) -> Self {
                Self(entropy.bytes())
            }

            /// The secret from a cookie.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The bytes, for the cookie alone.
            #[must_use]
            pub const fn expose(&self) -> &[u8; 32] {
                &self.0
            }

            /// The hash that the store keeps.
            #[must_use]
            pub fn hash(&self) -> $hash {
                $hash(<sha2::Sha256 as sha2::Digest>::digest(self.0).into())
            }
        }

        impl std::fmt::Debug for $secret {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($secret), "(hidden)"))
            }
        }
    };
}

pub(crate) use cookie_secret;
