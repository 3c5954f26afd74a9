/** Makes a reading of work that may fail; the reason has neither a secret nor a stored value. */
import { isFault } from '../../../errors/fault.ts'
import type { Reading } from '../readings.ts'

export async function readingOf<T>(read: () => Promise<T> | T): Promise<Reading<T>> {
  try {
    return { value: await read() }
  } catch (error) {
    return { failed: reasonOf(error) }
  }
}

/** Codes of the system and of SQLite, and details of Faults; never the text of another error. */
export function reasonOf(error: unknown): string {
  if (isFault(error)) return [error.code, error.detail].filter(Boolean).join(': ')
  const { code, name, message } = error as { code?: unknown; name?: string; message?: string }
  if (name === 'QueryFailure' || name === 'FileFailure') return message ?? name
  return typeof code === 'string' ? code : 'it cannot be read'
}

/** Applies `use` to a reading that was made. */
export function mapped<T, U>(reading: Reading<T>, use: (value: T) => Reading<U>): Reading<U> {
  return 'value' in reading ? use(reading.value) : reading
}
