/** Calls, errors and durations of each Function of a target in the last hour. */
import type { FunctionFiguresReport } from '../../../wire/metrics.ts'
import { durationText, timeText } from '../../formats.ts'
import type { Loaded } from '../../loading.ts'
import { FailureNote } from '../../parts/page.tsx'
import type { Column } from '../../parts/table.tsx'
import { call, failureOf } from '../../requests.ts'
import { environmentId, may } from '../../state.ts'
import type { FunctionField } from './function-field.ts'

/** `denied` for an operator who may not read figures, `older` for a server without the route. */
export type Figures = FunctionFiguresReport | 'denied' | 'older'

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

/** Returns no column where there are no figures. */
export function figureColumns(figures: Figures | null): Column<FunctionField>[] {
  if (figures === null || typeof figures === 'string') return []
  const figureOf = new Map(figures.functions.map((figure) => [figure.name, figure]))
  const column = (
    head: string,
    cell: (figure: FunctionFiguresReport['functions'][number]) => string,
  ): Column<FunctionField> => ({
    head,
    isNumber: true,
    cell: ({ name }) => {
      const figure = figureOf.get(name)
      return figure === undefined ? '–' : cell(figure)
    },
  })
  return [
    column('Calls', ({ calls }) => calls),
    column('Rejected', ({ calls, rejected }) => shareText(rejected, calls)),
    column('Failed', ({ calls, failed }) => shareText(failed, calls)),
    column('p50', ({ p50Micros }) => microsText(p50Micros)),
    column('p95', ({ p95Micros }) => microsText(p95Micros)),
    column('p99', ({ p99Micros }) => microsText(p99Micros)),
  ]
}

function shareText(count: string, calls: string): string {
  if (count === '0') return '0'
  return `${count} (${((100 * Number(count)) / Number(calls)).toFixed(1)} %)`
}

function microsText(micros: string | null): string {
  return micros === null ? '–' : durationText(Number(micros))
}
