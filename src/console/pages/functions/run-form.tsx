/** The form that runs a Function with the arguments that a person writes. */
import { useRef, useState } from 'preact/hooks'
import type { Value } from '../../../value/values.ts'
import { nowMillis } from '../../clock.ts'
import { Empty, Section } from '../../parts/page.tsx'
import { call, Failure, failureOf, newId } from '../../requests.ts'
import { ask, environment, environmentId, may, svcCommand } from '../../state.ts'
import { plainArguments, taggedArguments, type Violation } from './arguments.ts'
import { ArgumentsEditor, useArguments } from './arguments-editor.tsx'
import type { FunctionField } from './function-field.ts'
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
  const given = useArguments(fields)
  const { outcome, run } = useRuns(target, found)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const value = given.read()
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
  const shown = given.violations.length > 0 ? invalid(given.violations) : outcome
  return (
    <>
      <form onSubmit={submit} aria-label={`Run ${name}`}>
        <ArgumentsEditor fields={fields} given={given} />
        <button type="submit" class="main" disabled={outcome?.kind === 'running'}>
          {kind === 'query' ? 'Run' : 'Run …'}
        </button>
      </form>
      {shown !== null && <RunOutcome outcome={shown} found={found} releaseId={releaseId} />}
    </>
  )
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
