/** The OpenAPI document of this version, as it is served and shipped. */
import {
  DEVELOPMENT_ROUTES,
  FILE_TRANSFERS,
  INVOCATIONS,
  PROBES,
  REALTIME,
} from '../application/routes.ts'
import type { Route } from '../management/route.ts'
import { managementRoutes } from '../management/routes.ts'
import {
  developmentOperation,
  invocationOperation,
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
    ...(managementRoutes as readonly Route<never>[]).flatMap(managementOperations),
    ...INVOCATIONS.map(invocationOperation),
    ...FILE_TRANSFERS.map(transferOperation),
    ...DEVELOPMENT_ROUTES.map(developmentOperation),
    ...PROBES.map(probeOperation),
    realtimeOperation(REALTIME),
  ])
}
