/** Fingerprints of calls: those of an exact repeat are equal, those of other calls differ. */
import { Fault } from '../../errors/fault.ts'
import { digestEquals, sha256 } from '../../system/digests.ts'
import type { FunctionManifest } from '../../value/manifest.ts'

/** The parts of a call that an exact repeat has in common with it. */
export interface Fingerprinted {
  /** The target in the caller's own words, such as a Channel. */
  readonly target: string
  /** The Application Client and the functional principal, as one text. */
  readonly caller: string
  /** Stored JSON. */
  readonly argumentsText: string
  readonly definition: Pick<FunctionManifest, 'name'>
}

/** Hashes all that an exact repeat has in common (contract/application.md, Mutation operations). */
export function fingerprintOf({
  target,
  definition,
  caller,
  argumentsText,
}: Fingerprinted): Uint8Array {
  // The lengths make the concatenation unambiguous.
  const lengths = `${target.length},${definition.name.length},${caller.length}`
  return sha256(`${lengths}\n${target}${definition.name}${caller}${argumentsText}`)
}

/** Throws OPERATION_REUSED where the request is not an exact repeat. */
export function checkFingerprint(original: Uint8Array, repeat: Uint8Array): void {
  if (!digestEquals(original, repeat)) throw new Fault('OPERATION_REUSED')
}
