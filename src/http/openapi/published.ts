/** The OpenAPI document of this version, as it is served and shipped. */
import { MANAGEMENT_OPERATIONS } from '../../wire/operations/management.ts'
import {
  DEVELOPMENT_ROUTES,
  FILE_TRANSFERS,
  FUNCTIONS_DOCUMENT,
  INVOCATIONS,
  PLAIN_CALLS,
  PROBES,
  REALTIME,
} from '../application/routes.ts'
import {
  developmentOperation,
  functionsDocumentOperation,
  invocationOperation,
  plainCallOperation,
  probeOperation,
  realtimeOperation,
  transferOperation,
} from './application.ts'
import { openApiDocument } from './document.ts'
import { managementOperations } from './management.ts'

let text: string | undefined

/** Returns the document as indented JSON, so that two versions can be compared line by line. */
export function openApiText(): string {
  text ??= `${JSON.stringify(publishedDocument(), null, 2)}\n`
  return text
}

export function publishedDocument(): object {
  return openApiDocument([
    ...MANAGEMENT_OPERATIONS.flatMap(managementOperations),
    ...INVOCATIONS.map(invocationOperation),
    functionsDocumentOperation(FUNCTIONS_DOCUMENT),
    ...PLAIN_CALLS.map(plainCallOperation),
    ...FILE_TRANSFERS.map(transferOperation),
    ...DEVELOPMENT_ROUTES.map(developmentOperation),
    ...PROBES.map(probeOperation),
    realtimeOperation(REALTIME),
  ])
}
