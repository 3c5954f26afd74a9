/** Texts for authors that name a limit of calls with its bound. */
import type { FunctionKind } from '../../value/manifest.ts'
import {
  ACTION_CPU_MILLIS_MAX,
  CALL_CPU_MILLIS_MAX,
  CALL_GROWTH_BYTES_MAX,
  LOAD_CPU_MILLIS_MAX,
  OPERATIONS_MAX,
  RESULT_BYTES_MAX,
  RUNNER_GROWTH_BYTES_MAX,
} from '../limits.ts'
import type { RunnerLimit } from './outcomes.ts'

const CPU_MILLIS = {
  query: CALL_CPU_MILLIS_MAX,
  mutation: CALL_CPU_MILLIS_MAX,
  action: ACTION_CPU_MILLIS_MAX,
  load: LOAD_CPU_MILLIS_MAX,
}
const MEBIBYTE = 1024 * 1024

/** Returns a text such as `cpu: at most 1000 ms`. `load` is the start of a Release. */
export function limitText(limit: RunnerLimit, kind: FunctionKind | 'load'): string {
  return `${limit}: at most ${boundOf(limit, kind)}`
}

function boundOf(limit: RunnerLimit, kind: FunctionKind | 'load'): string {
  const whole = `${RUNNER_GROWTH_BYTES_MAX / MEBIBYTE} MiB`
  switch (limit) {
    case 'cpu':
      return `${CPU_MILLIS[kind]} ms`
    case 'memory':
      if (kind === 'load') return whole
      return `${CALL_GROWTH_BYTES_MAX / MEBIBYTE} MiB without a pause, ${whole} by all calls`
    case 'result':
      return `${RESULT_BYTES_MAX / MEBIBYTE} MiB`
    case 'operations':
      return `${OPERATIONS_MAX} operations of ctx`
  }
}
