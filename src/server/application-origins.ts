/** Mounts the application origin of an open Environment. */

import { FunctionDocuments } from '../http/application/functions/documents.ts'
import { PlainForms } from '../http/application/functions/forms.ts'
import type { Gateway } from '../http/application/gateway.ts'
import { type ApplicationOrigin, mountApplication } from '../http/application/mount.ts'
import { ParsedQueries } from '../http/application/parsed-queries.ts'
import { Realtime } from '../http/application/realtime/realtime.ts'
import { applicationLimits } from '../http/rate-limits.ts'
import { hookPorts } from '../product/http-mounts/hook-ports.ts'
import { resolveTarget, unservedReason } from '../product/serving/target-resolution.ts'
import type { RealtimeSettings } from '../settings/realtime.ts'
import type { Metrics } from '../telemetry/metrics/metrics.ts'
import type { OpenEnvironment } from './environments.ts'

export interface ApplicationOptions
  extends Pick<
    Gateway,
    'system' | 'transfers' | 'counts' | 'allowedOrigins' | 's3Host' | 'traces'
  > {
  readonly metrics: Metrics
  readonly realtime: RealtimeSettings
  /** Memory in which application processes share the rate limits; null without such processes. */
  readonly sharedLimits: BigInt64Array | null
}

/** The parts of an Environment that its application origin uses. */
export type ServedEnvironment = Pick<
  OpenEnvironment,
  'product' | 'engine' | 'files' | 'tokens' | 'log' | 'keyUsage' | 'memory'
> &
  Pick<Gateway, 'rejections'>

export function openApplication(
  { product, engine, files, tokens, log, keyUsage, memory, rejections }: ServedEnvironment,
  options: ApplicationOptions,
): ApplicationOrigin {
  const { system, transfers, counts, allowedOrigins, s3Host, metrics, realtime, traces } = options
  const gateway: Gateway = {
    system,
    log,
    engine,
    tokens,
    transfers,
    files,
    counts,
    keyUsage,
    rejections,
    allowedOrigins,
    s3Host,
    workspaces: product,
    hooks: hookPorts(product, engine),
    traces: traces ?? null,
    parsedQueries: new ParsedQueries(memory),
    plainForms: new PlainForms(memory),
    functionDocuments: new FunctionDocuments(memory),
    limits: applicationLimits(system, options.sharedLimits),
    authenticateKey: (key) => product.keys.authenticate(key),
    explainKey: (key) => product.keys.explain(key),
    resolveTarget: (target, caller, source) => resolveTarget(product, caller, target, source),
    revision: () => product.root.control.changes + product.serving.changes,
    unservedReason: () => unservedReason(product),
    canServe: () => product.serving.canServe(),
  }
  return mountApplication(gateway, new Realtime(gateway, realtime, metrics))
}
