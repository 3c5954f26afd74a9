/** The arguments of a run: a control for each, or one text of plain JSON. */
import { useState } from 'preact/hooks'
import type { FieldsJson } from '../../../value/validators.ts'
import type { Value } from '../../../value/values.ts'
import { Empty } from '../../parts/page.tsx'
import { ArgumentField } from './argument-field.tsx'
import {
  argumentsOf,
  argumentsOfJson,
  draftOf,
  type Entries,
  type Entry,
  emptyEntries,
  entriesOf,
  type Violation,
} from './arguments.ts'

export interface WrittenArguments {
  readonly entries: Entries
  /** The arguments as one text; null while there is a control for each. */
  readonly json: string | null
  readonly violations: readonly Violation[]
  /** Returns the arguments; null with violations. */
  read(): Value | null
  setEntry(name: string, entry: Entry): void
  setJson(json: string): void
  /** Changes between controls and JSON. Returns whether it is JSON then. */
  toggle(isJson: boolean): boolean
}

const UNKNOWN_MEMBER: Violation = {
  path: '$',
  rule: 'a value that a control for each argument can hold; send it as JSON',
}

export function useArguments(fields: FieldsJson): WrittenArguments {
  const [entries, setEntries] = useState<Entries>(() => emptyEntries(fields))
  const [json, setJson] = useState<string | null>(null)
  const [violations, setViolations] = useState<readonly Violation[]>([])
  const read = (): Value | null => {
    const found = json === null ? argumentsOf(entries, fields) : argumentsOfJson(json, fields)
    setViolations(found.violations ?? [])
    return found.value
  }
  const toggle = (isJson: boolean): boolean => {
    if (isJson) {
      setViolations([])
      setJson(draftOf(entries, fields))
      return true
    }
    const value = read()
    if (value === null) return true
    const next = entriesOf(value, fields)
    if (next === null) {
      setViolations([UNKNOWN_MEMBER])
      return true
    }
    setEntries(next)
    setJson(null)
    return false
  }
  const setEntry = (name: string, entry: Entry): void =>
    setEntries((before) => ({ ...before, [name]: entry }))
  return { entries, json, violations, read, setEntry, setJson, toggle }
}

export function ArgumentsEditor({
  fields,
  given: { entries, json, violations, setEntry, setJson, toggle },
}: {
  fields: FieldsJson
  given: WrittenArguments
}) {
  const change = ({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void => {
    // The box stays checked where the text is not arguments yet.
    currentTarget.checked = toggle(currentTarget.checked)
  }
  return (
    <>
      <label class="field check wide">
        <input type="checkbox" name="json" checked={json !== null} onChange={change} />
        Arguments as JSON
      </label>
      {json === null ? (
        Object.entries(fields).map(([name, field]) => (
          <ArgumentField
            key={name}
            name={name}
            field={field}
            entry={entries[name]!}
            violations={violations.filter(({ path }) => isAt(path, name))}
            onChange={(entry) => setEntry(name, entry)}
          />
        ))
      ) : (
        <label class="field wide">
          <span class="label">All arguments</span>
          <textarea
            name="arguments"
            rows={8}
            spellcheck={false}
            value={json}
            onInput={(event) => setJson(event.currentTarget.value)}
          />
        </label>
      )}
      {json === null && Object.keys(fields).length === 0 && <Empty>It has no arguments.</Empty>}
    </>
  )
}

function isAt(path: string, name: string): boolean {
  return path === `$.${name}` || path.startsWith(`$.${name}.`) || path.startsWith(`$.${name}[`)
}
