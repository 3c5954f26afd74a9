/** Versions as package managers compare them. */
import { assert } from '../../src/errors/assert.ts'

const SEMANTIC = /^(\d+\.\d+\.\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?$/

/**
 * Returns a semantic version in the form of dpkg and rpm, which is the same for both. A tilde sorts
 * before the end of a version, so that a pre-release is older than its release. A dash would begin
 * the revision of the package.
 */
export function packageVersion(version: string): string {
  const match = SEMANTIC.exec(version)
  assert(match !== null, `${version} is not a semantic version`)
  const [, core, preRelease, build] = match
  const part = (mark: string, text?: string): string =>
    text === undefined ? '' : `${mark}${text.replaceAll('-', '.')}`
  return `${core}${part('~', preRelease)}${part('+', build)}`
}
