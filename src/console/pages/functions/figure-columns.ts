/** The columns of calls, errors and durations of Functions. */
import type { FunctionFiguresReport } from '../../../wire/metrics.ts'
import { durationText } from '../../formats.ts'
import type { Column } from '../../parts/table.tsx'
import type { FunctionField } from './function-field.ts'

/** `denied` for an operator who may not read figures, `older` for a server without the route. */
export type Figures = FunctionFiguresReport | 'denied' | 'older'

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
