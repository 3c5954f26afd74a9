/** The commit of the sources and a mark of changes, which build/bundle.ts defines. */
declare const SVC_COMMIT: string | undefined

/** Values of a release, which build/bundle.ts defines; empty for what is built from the sources. */
declare const SVC_RELEASE_PUBLIC_KEY: string | undefined
declare const SVC_UPGRADE_URL: string | undefined

/** The version of the product, as the changelog names it. A test compares it with package.json. */
export const VERSION = '0.5.0'

/**
 * The version with the commit that it was built from, such as `0.5.0+3614d4d9`, as `version` and
 * the server print it; without a commit where the sources run as they are.
 */
export const BUILD_VERSION =
  typeof SVC_COMMIT === 'undefined' || SVC_COMMIT === '' ? VERSION : `${VERSION}+${SVC_COMMIT}`

/**
 * The public key for minisign that signs the release which this executable belongs to, in base64
 * as `minisign -P` takes it; empty where the release is unsigned or the sources run as they are.
 */
export const RELEASE_PUBLIC_KEY =
  typeof SVC_RELEASE_PUBLIC_KEY === 'undefined' ? '' : SVC_RELEASE_PUBLIC_KEY

/** The address of the newest release; empty where this one names none. */
export const UPGRADE_URL = typeof SVC_UPGRADE_URL === 'undefined' ? '' : SVC_UPGRADE_URL

/** The product version of a server beside that of this client. */
export type VersionDifference = 'same' | 'older' | 'newer'

const FORM = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+]|$)/

/**
 * Compares the version of a server with `own`, without commits. Servers before 0.5.0 name none, so
 * that a missing header is an older server.
 */
export function compareVersions(server: string | null, own: string = VERSION): VersionDifference {
  const theirs = parseNumbers(server)
  const ours = parseNumbers(own)
  const at = ours.findIndex((number, index) => number !== theirs[index])
  if (at === -1) return 'same'
  return (theirs[at] ?? -1) < ours[at]! ? 'older' : 'newer'
}

function parseNumbers(version: string | null): readonly number[] {
  return (FORM.exec(version ?? '') ?? []).slice(1).map(Number)
}
