/** Functions that operators run. Who may run which is decided in product/invocations. */
import { type Invoked, invokeFunction } from '../../../product/invocations/invocations.ts'
import type { RequestId } from '../../../value/ids.ts'
import type { Json } from '../../../value/strict-json.ts'
import { decodeTagged } from '../../../value/tagged.ts'
import { ValidationError } from '../../../value/validation-error.ts'
import type { ValueObject } from '../../../value/values.ts'
import type { OperatorInvoked } from '../../../wire/invocations.ts'
import { invocationOperations } from '../../../wire/operations/functions/invocations.ts'
import type { ProductApp } from '../product-app.ts'
import { bind, type Route } from '../route.ts'

const JSON_TYPE = 'application/json; charset=utf-8'

export const invocationRoutes: readonly Route<ProductApp>[] = bind(invocationOperations, {
  async invokeFunction({ app, actor, body, request, requestId, trace, connection }) {
    const { target, operationId = null } = body
    const given = argumentsOf(body.arguments as Json)
    const { signal } = request
    const input = { target, function: body.function, arguments: given, operationId }
    // An Action may take longer than an idle connection stays open.
    connection.takeTime?.()
    try {
      const invoked = await invokeFunction(app.product, actor, {
        ...input,
        requestId,
        trace,
        signal,
      })
      return { status: 200, text: textOf(requestId, invoked), contentType: JSON_TYPE }
    } finally {
      connection.returnTime?.()
    }
  },
})

function argumentsOf(json: Json): ValueObject {
  const value = decodeTagged(json, 'arguments')
  if (!(value instanceof Map)) throw new ValidationError('an object value', 'arguments')
  return value as ValueObject
}

/** Returns the response as text, since the result is the text of tagged JSON already. */
function textOf(requestId: RequestId, invoked: Invoked): string {
  const { releaseId, invocationId, outcome } = invoked
  const head = JSON.stringify({ version: 1, status: 'ok', requestId, releaseId, invocationId })
  const metadata = JSON.stringify(metadataOf(invoked))
  return `${head.slice(0, -1)},"result":${outcome.resultText},"metadata":${metadata}}`
}

function metadataOf(invoked: Invoked): OperatorInvoked['metadata'] {
  const { kind } = invoked
  switch (kind) {
    case 'query':
      return { kind, snapshotSequence: decimal(invoked.outcome.snapshotSequence) }
    case 'mutation': {
      const { commitSequence, replayed, attempts } = invoked.outcome
      const { operationId } = invoked
      return { kind, commitSequence: decimal(commitSequence), replayed, attempts, operationId }
    }
    case 'action':
      return { kind, schedulesCreated: String(invoked.outcome.schedulesCreated) }
  }
}

function decimal(sequence: number | null): string | null {
  return sequence === null ? null : String(sequence)
}
