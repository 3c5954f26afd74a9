/** Converts operations to arguments of the Workspace's Functions, and results to answers. */
import { id, int64, type Json, object, string } from '../application.ts'
import type { Answer, Operation } from './history.ts'

export function toArguments(
  operations: readonly Operation[],
  cells: readonly string[],
): Record<string, Json> {
  return {
    operations: { type: 'array', value: operations.map(argumentOf) },
    cells: { type: 'array', value: cells.map(id) },
  }
}

export function parseAnswers(result: Json): Answer[] {
  return result.value.map((answer: Json) => answer.value.map(({ value }: Json) => Number(value)))
}

/** Returns the IDs of the cells, which the first Mutation of the run creates. */
export function parseCells(result: Json): string[] {
  return result.value.map(({ value }: Json) => value)
}

function argumentOf(operation: Operation): Json {
  switch (operation.kind) {
    case 'append':
      return tagged(operation.kind, operation.key, { value: operation.element })
    case 'write':
      return tagged(operation.kind, operation.key, operation)
    case 'range': {
      const { space, from, to, limit, order } = operation
      return tagged(operation.kind, space, { value: from, to, limit, how: order })
    }
    case 'list':
    case 'read':
      return tagged(operation.kind, operation.key, {})
  }
}

function tagged(
  kind: string,
  key: number,
  rest: { value?: number; to?: number; limit?: number; how?: string },
): Json {
  const { value = 0, to = 0, limit = 0, how = '' } = rest
  return object({
    kind: string(kind),
    key: int64(key),
    value: int64(value),
    to: int64(to),
    limit: int64(limit),
    how: string(how),
  })
}
