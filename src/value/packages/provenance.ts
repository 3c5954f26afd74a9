/**
 * The origin of a published package, as its publisher declares it. It is stored beside the
 * revision: the bytes of a package depend on its source alone.
 */

export type Provenance = {
  /** 1 to 512 characters. */
  readonly message: string | null
  /** A Git object name: 40 or 64 lowercase hex characters. */
  readonly commit: string | null
  /** 1 to 256 characters. */
  readonly branch: string | null
  /** True if files of the Workspace differed from the commit; null if that is unknown. */
  readonly dirty: boolean | null
  /** The run of a pipeline that published. */
  readonly run: PipelineRun | null
}

export type PipelineRun = {
  /** Name of the platform, such as `github`. */
  readonly provider: string
  /** 1 to 128 characters. */
  readonly id: string
  readonly url: string | null
}

/** @limit Workspaces and Releases: the message of a publication */
export const MESSAGE_CHARACTERS_MAX = 512
export const BRANCH_CHARACTERS_MAX = 256
export const RUN_ID_CHARACTERS_MAX = 128
/**
 * Bytes of the JSON text: as base64url it fits the header buffers of common proxies (8 KiB).
 * @limit Workspaces and Releases: what a publication declares of its origin
 */
export const PROVENANCE_BYTES_MAX = 4_096

export const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
export const RUN_PROVIDER = /^[a-z][a-z0-9-]{0,31}$/
/** Printable ASCII, at most 1,024 characters. */
export const RUN_URL = /^https?:\/\/[!-~]{1,1016}$/

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** Returns whether a text is one line: 1 to `max` code points in NFC, no control character. */
export function isLine(text: string, max: number): boolean {
  if (text === '' || text.length > 2 * max || Array.from(text).length > max) return false
  return !CONTROL.test(text) && text.isWellFormed() && text.normalize('NFC') === text
}
