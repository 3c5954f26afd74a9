/** Continuation tokens of lists of objects: the key to continue from, sealed. */
import { Cursors } from '../../storage/cursors.ts'
import type { FilePorts } from './ports.ts'

export function sealContinuation(
  { keyring }: Pick<FilePorts, 'keyring'>,
  list: string,
  from: string,
): string {
  return new Cursors(keyring).seal(list, Buffer.from(from).toString('latin1'))
}

/** Returns the key to continue from; null for a token of another list, or a forged one. */
export function openContinuation(
  { keyring }: Pick<FilePorts, 'keyring'>,
  list: string,
  token: string,
): string | null {
  const key = new Cursors(keyring).open(list, token)
  return key === null ? null : Buffer.from(key, 'latin1').toString()
}
