/** A table that scrolls inside its own frame, and is a list of labelled cells on narrow screens. */
import type { ComponentChildren } from 'preact'
import { labelOf } from './shown.tsx'

export interface Column<R> {
  readonly head: string
  readonly cell: (row: R) => ComponentChildren
  /** Numbers are aligned at their ends. */
  readonly isNumber?: boolean
  /** Short texts, such as times and states, stay on one line. */
  readonly isShort?: boolean
}

function classOf({ isNumber, isShort }: Pick<Column<never>, 'isNumber' | 'isShort'>) {
  if (isNumber === true) return 'number'
  return isShort === true ? 'nowrap' : undefined
}

export function Table<R>({
  label,
  rows,
  columns,
  keyOf,
}: {
  label: string
  rows: readonly R[]
  columns: readonly Column<R>[]
  keyOf: (row: R) => string
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a person scrolls it with the keyboard.
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls of a form.
    <div class="table" tabIndex={0} role="group" aria-label={labelOf(label)}>
      <table>
        <thead>
          <tr>
            {columns.map(({ head, isNumber }) => (
              <th key={head} scope="col" class={isNumber === true ? 'number' : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ head, cell, ...column }) => (
                <td key={head} class={classOf(column)} data-head={labelOf(head)}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
