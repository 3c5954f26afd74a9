/** Calls, errors and durations of each Function of a target in the last hour. */
import { timeText } from '../../formats.ts'
import type { Loaded } from '../../loading.ts'
import { FailureNote } from '../../parts/page.tsx'
import { call, failureOf } from '../../requests.ts'
import { environmentId, may } from '../../state.ts'
import type { Figures } from './figure-columns.ts'

export async function loadFigures(target: string, background: boolean): Promise<Figures> {
  if (!may('usage:read')) return 'denied'
  const id = environmentId.value
  try {
    return await call('readFunctionFigures', id, { query: { target } }, { background })
  } catch (error) {
    // The target exists: its catalog is shown.
    if (failureOf(error).code === 'PLATFORM_NOT_FOUND') return 'older'
    throw error
  }
}

export function FiguresNote({ of: { value, failure } }: { of: Loaded<Figures> }) {
  if (failure !== null) return <FailureNote failure={failure} />
  if (value === null || value === 'denied') return null
  if (value === 'older') return <p>Calls and durations need a server of version 0.5.0 or newer.</p>
  const since = timeText(value.sinceMicros)
  return value.functions.length === 0 ? (
    <p>No Function of this Release was called since {since}.</p>
  ) : (
    <p>Calls since {since}. Durations are those of executed calls, within 5 %.</p>
  )
}
