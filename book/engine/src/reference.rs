//! What a page refers to: `chapter.cell.value[x]@gpu`, resolved in the records.
