//! The known word that a mistyped one probably means.

/// The nearest of `candidates` to a mistyped `word`, if one is near enough to be worth a hint: a third of the
/// letters may differ. Of equally near ones the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(word);
    let limit = wanted.chars().count().max(3) / 3;
    let distances = candidates.into_iter().map(|candidate| (strsim::osa_distance(&wanted, &plain(candidate)), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    // A word of which every letter is wrong has nothing in common with anything.
    (distance <= limit && distance < wanted.chars().count()).then_some(candidate)
}

/// The hint that names the nearest of `candidates`, if one is near enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_given_for_slips_and_for_nothing_else() {
        let known = ["name", "descr", "tags", "valid_systems", "valid_prog_environs", "num_tasks", "env_vars", "if"];
        let rows = [
            ("nmae", Some("name")),
            ("description", None),
            ("desc", Some("descr")),
            ("tag", Some("tags")),
            ("Valid-Systems", Some("valid_systems")),
            ("valid_system", Some("valid_systems")),
            ("numtasks", Some("num_tasks")),
            ("env_var", Some("env_vars")),
            ("x", None),
            ("of", Some("if")),
            ("", None),
            ("fi", Some("if")),
            ("reference", None),
        ];
        for (word, expected) in rows {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("a", []), None);
    }
}
