/**
 * For each process that serves. Connects make much that dies at once; V8 would let its young generation grow to three times 16 MiB for
 * that, and keep it: 1.5 KiB for each of 10,000 readers. At its first size, collections are more frequent and as cheap.
 */
export const YOUNG_GENERATION_FLAG = "--semi-space-growth-factor=1";
