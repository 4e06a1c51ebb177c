//! Names of accounts, from wherever this machine knows them: its files, LDAP, SSSD.

use nix::unistd::{Uid, User};

/// The name of a user id; `None`: this machine knows no such account.
pub fn name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

/// Returns the user of this process: as the environment says it, else the name of the account, else the user id.
pub fn this_user() -> String {
    let of_environment =
        || ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok()).find(|name| !name.is_empty());
    let uid = Uid::current().as_raw();
    of_environment().or_else(|| name(uid)).unwrap_or_else(|| uid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_name_and_an_id_of_nobody_has_none() {
        assert_eq!(name(0).as_deref(), Some("root"));
        assert_eq!(name(4_000_000_000), None);
    }
}
