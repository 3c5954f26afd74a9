/** The changes of a schema that a dry run found, against each served Release. */
import type { PackageChecked } from '../../../wire/releases.ts'
import type { Output } from '../../output.ts'

type Served = NonNullable<PackageChecked['served']>[number]
type Change = Served['changes'][number]

const COLUMNS = ['CHANGE', 'PROMOTE', 'SIDE BY SIDE', 'ROLLBACK']

/** Returns a table for each served Release whose schema is another, and the refusals below it. */
export function changesText(
  { served = [], compatible }: Pick<PackageChecked, 'served' | 'compatible'>,
  output: Pick<Output, 'table'>,
): string[] {
  return served
    .filter(({ changes }) => changes.length > 0)
    .flatMap((release) => {
      const rows = release.changes.map((change) => rowOf(change, compatible))
      const more = release.omitted === 0 ? [] : [`and ${release.omitted} more changes`]
      const refusals = release.changes.flatMap((change) => change.refusals)
      return [
        `The schema against ${release.releaseId}, ${release.uses.join(', ')}:`,
        ...output.table(COLUMNS, rows),
        ...more,
        ...refusals.map((refusal) => `Not side by side: ${refusal}`),
      ]
    })
}

function rowOf({ table, path, change, promote, rollback, refusals }: Change, fits: boolean) {
  const name = path === '' ? table : `${table}.${path}`
  const checked = fits ? 'yes, all documents fit' : 'if all documents fit'
  return [
    `${name}: ${change}`,
    promote === 'allowed' ? 'yes' : checked,
    refusals.length === 0 ? 'yes' : 'no',
    rollback === 'allowed' ? 'yes' : 'if all documents fit',
  ]
}
