/** Buckets and storage keys (contract/wire.md, Buckets and storage keys). */

/** Bytes that a quota may have: the largest integer that every JSON reader keeps. */
export const QUOTA_BYTES_MAX = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Bytes of an object that passes through the management origin.
 * @limit Files: an object that passes through the management origin
 */
export const CONSOLE_OBJECT_BYTES_MAX = 64 * 1024 ** 2
