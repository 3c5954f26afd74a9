/** The form that runs a Function with the arguments that a person writes. */
import { useRef, useState } from 'preact/hooks'
import type { Value } from '../../../value/values.ts'
import { nowMillis } from '../../clock.ts'
import { Empty, Section } from '../../parts/page.tsx'
import { call, Failure, failureOf, newId } from '../../requests.ts'
import { ask, environment, environmentId, may, svcCommand } from '../../state.ts'
import { ArgumentField } from './argument-field.tsx'
import {
  argumentsOf,
  argumentsOfJson,
  draftOf,
  type Entries,
  emptyEntries,
  entriesOf,
  plainArguments,
  taggedArguments,
  type Violation,
} from './arguments.ts'
import type { FunctionField } from './functions.tsx'
import { type Outcome, RunOutcome } from './run-outcome.tsx'
import { callText, effectsOf, obstacleOf } from './run-rules.ts'

interface RunProperties {
  readonly target: string
  readonly releaseId: string
  readonly found: FunctionField
}

/** The form, or why the operator cannot run the Function. */
export function RunSection(properties: RunProperties) {
  const obstacle = obstacleOf(properties.found, may)
  return (
    <Section title="Run">
      {obstacle === null ? <RunForm {...properties} /> : <Empty>{obstacle}</Empty>}
    </Section>
  )
}

function RunForm({ target, releaseId, found }: RunProperties) {
  const { name, kind, arguments: fields } = found
  const [entries, setEntries] = useState<Entries>(() => emptyEntries(fields))
  /** The arguments as one text; null while there is a field for each. */
  const [json, setJson] = useState<string | null>(null)
  const [violations, setViolations] = useState<readonly Violation[]>([])
  const { outcome, run } = useRuns(target, found)
  const read = () => (json === null ? argumentsOf(entries, fields) : argumentsOfJson(json, fields))

  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const { value, violations: found } = read()
    setViolations(found ?? [])
    if (value === null) return
    if (kind === 'query') void run(value)
    else askBefore(value)
  }
  const askBefore = (value: Value): void =>
    ask({
      title: `Run the ${kind === 'mutation' ? 'Mutation' : 'Action'} ${name}?`,
      effects: effectsOf(found, target, environment.value?.name ?? ''),
      command: svcCommand(callText(name, target, plainArguments(value, fields))),
      label: 'Run it',
      // The page shows what becomes of it: an Action may take ten minutes.
      act: async () => void run(value),
      isShownByPage: true,
      done: () => {},
    })
  const toggle = (isJson: boolean): void => {
    setViolations([])
    if (isJson) {
      setJson(draftOf(entries, fields))
      return
    }
    const { value, violations: found } = read()
    const next = value === null ? null : entriesOf(value, fields)
    if (next === null) setViolations(found ?? [UNKNOWN_MEMBER])
    else {
      setEntries(next)
      setJson(null)
    }
  }
  const isRunning = outcome?.kind === 'running'
  return (
    <>
      <form onSubmit={submit} aria-label={`Run ${name}`}>
        <label class="field check wide">
          <input
            type="checkbox"
            name="json"
            checked={json !== null}
            onChange={(event) => {
              const { currentTarget } = event
              toggle(currentTarget.checked)
            }}
          />
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
              onChange={(entry) => setEntries((before) => ({ ...before, [name]: entry }))}
            />
          ))
        ) : (
          <label class="field wide">
            <span class="label">Arguments as JSON</span>
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
        <button type="submit" class="main" disabled={isRunning}>
          {kind === 'query' ? 'Run' : 'Run …'}
        </button>
      </form>
      {violations.length > 0 && (
        <RunOutcome {...{ found, releaseId }} outcome={invalid(violations)} />
      )}
      {violations.length === 0 && outcome !== null && (
        <RunOutcome outcome={outcome} found={found} releaseId={releaseId} />
      )}
    </>
  )
}

const UNKNOWN_MEMBER: Violation = {
  path: '$',
  rule: 'a value that a field for each argument can hold; send it as JSON',
}

function isAt(path: string, name: string): boolean {
  return path === `$.${name}` || path.startsWith(`$.${name}.`) || path.startsWith(`$.${name}[`)
}

function invalid(violations: readonly Violation[]): Outcome {
  const failure = new Failure({
    code: 'ARGUMENTS_INVALID',
    message: 'The arguments do not fit their validators. Nothing was sent.',
    next: 'Correct the arguments that are named, then run it again.',
    requestId: null,
    violations,
  })
  return { kind: 'failed', failure, operationId: null }
}

/** Runs the Function, at most once at a time. */
function useRuns(target: string, { name, kind }: FunctionField) {
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const isRunning = useRef(false)
  /**
   * The last operation that did not succeed. The same arguments are sent again as the same
   * operation, which the server then runs once.
   */
  const pending = useRef<{ readonly text: string; readonly operationId: string } | null>(null)
  const run = async (value: Value): Promise<void> => {
    if (isRunning.current) return
    isRunning.current = true
    setOutcome({ kind: 'running' })
    const tagged = taggedArguments(value)
    const text = JSON.stringify(tagged)
    const before = pending.current?.text === text ? pending.current.operationId : null
    const operationId = kind === 'mutation' ? (before ?? newId('opn')) : null
    pending.current = operationId === null ? null : { text, operationId }
    const body = {
      target,
      function: name,
      arguments: tagged,
      ...(operationId !== null && { operationId }),
    }
    const beganAt = nowMillis()
    try {
      const invoked = await call('invokeFunction', environmentId.value, { body })
      pending.current = null
      const elapsedMicros = (nowMillis() - beganAt) * 1_000
      setOutcome({ kind: 'succeeded', invoked, elapsedMicros })
    } catch (error) {
      setOutcome({ kind: 'failed', failure: failureOf(error), operationId })
    } finally {
      isRunning.current = false
    }
  }
  return { outcome, run }
}
