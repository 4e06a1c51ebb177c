//! The known word that somebody probably meant.

/// The nearest of `candidates` to a mistyped `word`, if one is near enough to be worth a hint: a third of the
/// letters may differ. Of equally near ones the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let wanted = plain(word);
    let limit = wanted.chars().count().max(3) / 3;
    let distances = candidates.into_iter().map(|candidate| (distance(&wanted, &plain(candidate)), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    // A word of which every letter is wrong has nothing in common with anything.
    (distance <= limit && distance < wanted.chars().count()).then_some(candidate)
}

/// How many letters have to be added, left out, replaced or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut previous = None;
    for (row, letter) in one.chars().enumerate() {
        let mut this = vec![row + 1; other.len() + 1];
        for (column, other_letter) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != *other_letter);
            this[column + 1] = replaced.min(last[column + 1] + 1).min(this[column] + 1);
            let swapped = column > 0 && previous == Some(*other_letter) && other[column - 1] == letter;
            if swapped {
                this[column + 1] = this[column + 1].min(before_last[column - 1] + 1);
            }
        }
        previous = Some(letter);
        before_last = std::mem::replace(&mut last, this);
    }
    last[other.len()]
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

    #[test]
    fn distances_count_swapped_neighbours_once() {
        for (one, other, expected) in [("", "", 0), ("ab", "ba", 1), ("abc", "", 3), ("kitten", "sitting", 3), ("é", "e", 1)] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }
}
