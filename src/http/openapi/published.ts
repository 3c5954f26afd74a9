/** The document as it is served and shipped: the same bytes, from the routes of this version. */
import { FILE_TRANSFERS, INVOCATIONS, PROBES } from '../application/routes.ts'
import type { Route } from '../management/route.ts'
import { managementRoutes } from '../management/routes.ts'
import { invocationOperation, probeOperation, transferOperation } from './application.ts'
import { openApiDocument } from './document.ts'
import { managementOperation } from './management.ts'

let text: string | undefined

/** JSON with a line for each part, for who reads it or compares two versions. */
export function openApiText(): string {
  text ??= `${JSON.stringify(publishedDocument(), null, 2)}\n`
  return text
}

export function publishedDocument(): object {
  return openApiDocument([
    ...(managementRoutes as readonly Route<never>[]).map(managementOperation),
    ...INVOCATIONS.map(invocationOperation),
    ...FILE_TRANSFERS.map(transferOperation),
    ...PROBES.map(probeOperation),
  ])
}
