//! The task: a file of `name=value` lines.

use std::collections::HashMap;

pub struct Task(HashMap<String, String>);

impl Task {
    pub fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(path).expect("a task");
        let told = text.lines().filter_map(|line| line.split_once('='));
        Self(
            told.map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    pub fn text(&self, name: &str) -> &str {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("the task says no {name}"))
    }

    pub fn number(&self, name: &str) -> usize {
        self.text(name).parse().expect("a number")
    }

    pub fn real(&self, name: &str) -> f64 {
        self.text(name).parse().expect("a number")
    }

    /// The first centres, one after another.
    pub fn centres(&self) -> Vec<f64> {
        let bytes = std::fs::read(self.text("centres")).expect("centres");
        let numbers = bytes.chunks_exact(8);
        numbers
            .map(|each| f64::from_le_bytes(each.try_into().expect("eight")))
            .collect()
    }
}
