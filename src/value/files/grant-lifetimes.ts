/** The lifetimes of grants to upload and to download a file (contract/wire.md, Grants). */

/** @limit Stored files: life of an upload grant; by default 15 minutes */
export const UPLOAD_SECONDS_MAX = 24 * 3_600
/** @limit Stored files: life of a download grant, and of a signed URL; by default 5 minutes */
export const DOWNLOAD_SECONDS_MAX = 3_600
/** Lifetimes of grants, in seconds. */
export const UPLOAD_SECONDS = { default: 15 * 60, max: UPLOAD_SECONDS_MAX }
export const DOWNLOAD_SECONDS = { default: 5 * 60, max: DOWNLOAD_SECONDS_MAX }
