/** The OpenAPI document of both origins. */
import { OpenApiDocument } from '../../wire/openapi.ts'
import { JSON_MEDIA_TYPE, publicRoute, type Route } from './route.ts'

export interface OpenApiApp {
  /** The same text each time. */
  openApiDocument(): string
}

export const openApiRoutes: readonly Route<OpenApiApp>[] = [
  publicRoute({
    method: 'GET',
    path: '/v1/openapi.json',
    name: 'readOpenApiDocument',
    summary: 'The OpenAPI document of both addresses.',
    replies: { 200: OpenApiDocument },
    cache: 'public, max-age=300',
    handle({ app }) {
      return { status: 200, text: app.openApiDocument(), contentType: JSON_MEDIA_TYPE }
    },
  }),
]
