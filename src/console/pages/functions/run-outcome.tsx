/** The outcome of a Function that the operator ran: its result, or its failure. */
import type { OperatorInvoked } from '../../../wire/invocations.ts'
import { durationText } from '../../formats.ts'
import { FailureNote } from '../../parts/page.tsx'
import { Block, Identifier, Shown } from '../../parts/shown.tsx'
import { editable, plainOf } from '../../plain-values.ts'
import type { Failure } from '../../requests.ts'
import { hrefOf, may } from '../../state.ts'
import type { FunctionField } from './function-field.ts'

export type Outcome =
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly operationId: string | null }
  | {
      readonly kind: 'succeeded'
      readonly invoked: OperatorInvoked
      readonly elapsedMicros: number
    }

/** The codes after which a Function may have run all the same. */
const UNCERTAIN: ReadonlySet<string> = new Set([
  'CLIENT_CHANGE_INTERRUPTED',
  'CLIENT_FAILED',
  'CLIENT_RESPONSE_INVALID',
  'CLIENT_RESULT_UNCERTAIN',
  'CLIENT_SERVER_UNREACHABLE',
  'CONSOLE_ENDED',
  'CONSOLE_FAILED',
  'DEADLINE_EXCEEDED',
  'INTERNAL',
  'RESULT_UNCERTAIN',
  'UNAVAILABLE',
])

export function RunOutcome({
  outcome,
  found,
  releaseId,
}: {
  outcome: Outcome
  found: FunctionField
  releaseId: string
}) {
  if (outcome.kind === 'running') {
    return (
      <p class="quiet" role="status">
        Running …
      </p>
    )
  }
  if (outcome.kind === 'failed') return <Failed outcome={outcome} found={found} />
  return <Succeeded outcome={outcome} found={found} releaseId={releaseId} />
}

function Failed({
  outcome: { failure, operationId },
  found: { kind },
}: {
  outcome: Outcome & { readonly kind: 'failed' }
  found: FunctionField
}) {
  const isUncertain = UNCERTAIN.has(failure.code) && kind !== 'query'
  return (
    <>
      <FailureNote failure={failure} />
      {isUncertain && operationId !== null && (
        <p>
          It may have taken effect. Run it again with the same arguments: the page sends the same
          operation ID, <Identifier id={operationId} />, so that it takes effect once.
        </p>
      )}
      {isUncertain && operationId === null && (
        <p>It may have taken effect. Look at its records in the log before you run it again.</p>
      )}
    </>
  )
}

function Succeeded({
  outcome: { invoked, elapsedMicros },
  found,
  releaseId,
}: {
  outcome: Outcome & { readonly kind: 'succeeded' }
  found: FunctionField
  releaseId: string
}) {
  const { requestId, metadata } = invoked
  return (
    <div role="status">
      <h3>Result</h3>
      <Block text={editable(plainOf(invoked.result, found.returns))} label="Result of the run" />
      <p class="facts">
        <span>{durationText(elapsedMicros)} until the response</span>
        {effectsOf(metadata).map((effect) => (
          <span key={effect}>{effect}</span>
        ))}
        {'operationId' in metadata && (
          <span>
            operation <Identifier id={metadata.operationId} />
          </span>
        )}
        {may('logs:read') && (
          <a href={hrefOf('logs', { request: requestId })}>Records of the request</a>
        )}
      </p>
      {invoked.releaseId !== releaseId && (
        <p>
          <Shown text={`${invoked.releaseId} answered; the page shows ${releaseId}. Reload it.`} />
        </p>
      )}
    </div>
  )
}

function effectsOf(metadata: OperatorInvoked['metadata']): string[] {
  switch (metadata.kind) {
    case 'query': {
      const { snapshotSequence } = metadata
      return [snapshotSequence === null ? 'read no data' : `read at sequence ${snapshotSequence}`]
    }
    case 'mutation': {
      const { commitSequence, replayed, attempts } = metadata
      return [
        commitSequence === null ? 'wrote nothing' : `committed at sequence ${commitSequence}`,
        ...(replayed ? ['the result of the first run of this operation'] : []),
        ...(attempts > 1 ? [`${attempts} attempts`] : []),
      ]
    }
    case 'action':
      return metadata.schedulesCreated === '0'
        ? []
        : [`scheduled ${metadata.schedulesCreated} runs`]
  }
}
