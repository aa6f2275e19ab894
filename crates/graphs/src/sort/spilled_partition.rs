//! A partition between the passes: the blocks that pass one spilled to scratch.

use std::sync::Arc;

use tonnage_stages::extent::{ALIGNMENT, Extent, Piece, aligned};

/// A spilled partition.
pub struct SpilledPartition {
    /// Number of the partition; the parts of a repartitioned one keep its number.
    pub number: usize,
    /// Its blocks, in the order in which they were filled.
    pub blocks: Vec<Piece>,
    /// The device of its blocks.
    pub lane: usize,
    /// Whether all its keys are equal, so that it needs no sorting.
    pub in_order: bool,
}

impl SpilledPartition {
    /// Bytes of memory for the whole partition.
    pub fn span(&self) -> usize {
        self.blocks.iter().map(|block| aligned(block.len)).sum()
    }

    /// The blocks in pieces of at most `most_bytes`, which is a multiple of the record.
    fn pieces(&self, most_bytes: usize) -> impl Iterator<Item = Piece> + '_ {
        let divide = move |block: &Piece| {
            let block = block.clone();
            (0..block.len).step_by(most_bytes).map(move |at| Piece {
                file: block.file.clone(),
                offset: block.offset + at as u64,
                len: most_bytes.min(block.len - at),
                crc: block.crc.filter(|_| block.len <= most_bytes),
            })
        };
        self.blocks.iter().flat_map(divide)
    }

    fn extent(&self, pieces: Vec<Piece>) -> Extent {
        Extent {
            number: 0,
            offset: 0,
            in_order: self.in_order,
            pieces,
        }
    }

    /// The first bytes, at most `chunk_bytes`, of about `chunks` blocks spread evenly over all.
    pub fn sample(&self, chunks: usize, chunk_bytes: usize) -> Vec<Arc<Extent>> {
        let every = self.blocks.len().div_ceil(chunks).max(1);
        let chunk = |block: &Piece| Piece {
            len: block.len.min(chunk_bytes),
            crc: block.crc.filter(|_| block.len <= chunk_bytes),
            ..block.clone()
        };
        let chosen = self.blocks.iter().step_by(every).map(chunk);
        chosen
            .map(|piece| Arc::new(self.extent(vec![piece])))
            .collect()
    }

    /// One piece per extent, so that records have no gaps between them: for repartitioning.
    pub fn divided(&self, most_bytes: usize) -> Vec<Arc<Extent>> {
        let pieces = self.pieces(most_bytes);
        pieces
            .map(|piece| Arc::new(self.extent(vec![piece])))
            .collect()
    }

    /// The partition as one extent of this number.
    pub fn into_extent(mut self, number: usize) -> Extent {
        let blocks = std::mem::take(&mut self.blocks);
        Extent {
            number,
            ..self.extent(blocks)
        }
    }

    /// A partition that needs no sorting, as several that span at most `most_bytes` each, in whole
    /// blocks.
    pub fn in_parts(self, most_bytes: usize) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for block in self.blocks {
            match parts.last_mut() {
                Some(part) if part.span() + aligned(block.len) <= most_bytes => {
                    part.blocks.push(block);
                }
                _ => parts.push(Self {
                    number: self.number,
                    blocks: vec![block],
                    lane: self.lane,
                    in_order: self.in_order,
                }),
            }
        }
        parts
    }

    /// The partition as one extent, since it is sorted whole; if it needs no sorting, as extents
    /// that span at most `most_bytes`.
    pub fn extents(mut self, most_bytes: usize, record_bytes: usize) -> Vec<Extent> {
        if !self.in_order {
            let blocks = std::mem::take(&mut self.blocks);
            return vec![self.extent(blocks)];
        }
        // A piece may span some alignment at both ends.
        let longest = most_bytes.saturating_sub(2 * ALIGNMENT) / record_bytes;
        let mut extents: Vec<Extent> = Vec::new();
        for piece in self.pieces(longest.max(1) * record_bytes) {
            let span = aligned(piece.head() + piece.len);
            match extents.last_mut() {
                Some(extent) if extent.span() + span <= most_bytes => extent.pieces.push(piece),
                _ => extents.push(self.extent(vec![piece])),
            }
        }
        extents
    }
}
