/** Parts of `svc dev hook` beside the builder: signatures, and failures with lines of source. */
import type {
  SampleSignature,
  UnsignedSample,
  WorkspaceTools,
} from '../../client/development/workspace-tools.ts'
import { explanation } from '../../client/explanations.ts'
import { Fault, isFault } from '../../errors/fault.ts'
import { signRequest } from '../../product/http-mounts/signatures/signing.ts'
import type { LogRecord } from '../../telemetry/log.ts'
import { CONFIGURATION_FILE, readConfigurationFile } from '../configuration/configuration-file.ts'
import { toEvent } from './log-events.ts'

/** Text that each scheme accepts as a secret, for samples alone. */
const SAMPLE_SECRETS: Partial<Record<UnsignedSample['verify']['scheme'], string>> = {
  standardWebhooks: 'whsec_c2FtcGxl',
}

/** Throws CLIENT_FILE_FAILED for a secret that is missing, and for one that cannot be used. */
export function signSample({
  workspaceDirectory,
  verify,
  ...request
}: UnsignedSample): SampleSignature {
  const { values, warnings } = readConfigurationFile(workspaceDirectory)
  if (values === null) throw new Fault('CLIENT_FILE_FAILED', { detail: warnings.join(' ') })
  const value = values.get(verify.secret) ?? null
  const file = `${CONFIGURATION_FILE} of ${workspaceDirectory}`
  if (value === null || value.reveal().trim() === '') {
    throw unsigned(verify, `${file} has no ${verify.secret}, with which the hook verifies.`)
  }
  try {
    return signRequest(verify, value, request)
  } catch (error) {
    if (!isFault(error, 'UNAVAILABLE')) throw error
    throw unsigned(verify, `${file}: ${error.detail}.`)
  }
}

function unsigned({ scheme, secret }: UnsignedSample['verify'], detail: string): Fault {
  const sample = SAMPLE_SECRETS[scheme] ?? 'any-text'
  const next =
    `Write a line ${secret}=SECRET into it. For samples any secret will do, such as ${sample}; ` +
    'for requests of the service it is the one that the service shows.'
  return new Fault('CLIENT_FILE_FAILED', { detail, cause: explanation({ next }) })
}

export const failureOf: (
  ...input: Parameters<WorkspaceTools['failureOf']>
) => Awaited<ReturnType<WorkspaceTools['failureOf']>> = (record, workspaceDirectory) => {
  const { fields, ...columns } = record
  const event = toEvent({ ...fields, ...columns } as unknown as LogRecord, workspaceDirectory)
  return event?.event === 'failed' ? event : null
}
