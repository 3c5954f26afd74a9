/** Bases of a target whose place has another file system than before, or had one for a moment. */
import { Fault, isFault } from '../../errors/fault.ts'
import type { ChainWriter } from '../format/chain-writer.ts'

/**
 * Makes a base, and once more where the target has another chain than the one that was written: a
 * file system may have been mounted or unmounted meanwhile. `openedChain` returns the chain that
 * the attempt has used; null before it is open. Raises BACKUP_TARGET_CHANGED where the file system
 * of the chain is not in its place, and BACKUP_CORRUPT only where it is.
 */
export async function lookAgain<T>(
  openedChain: () => ChainWriter | null,
  attempt: () => Promise<T>,
): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    await requireKnownPlace(openedChain(), ['same', 'covered'], error)
  }
  try {
    return await attempt()
  } catch (error) {
    await requireKnownPlace(openedChain(), ['same'], error)
    throw error
  }
}

/** Throws the error unless it is of another chain in one of these places. */
async function requireKnownPlace(
  chain: ChainWriter | null,
  known: readonly ('same' | 'covered' | 'replaced')[],
  error: unknown,
): Promise<void> {
  if (!isFault(error, 'BACKUP_CORRUPT')) throw error
  const place = (await chain?.place()) ?? 'same'
  if (known.includes(place)) return
  throw new Fault('BACKUP_TARGET_CHANGED', {
    cause: error,
    detail: 'another file system, or none, is in the place of the one with the backups',
  })
}
