/**
 * Builds one OpenAPI document of both origins from the routes that mount serves. A path of the
 * application origin names its server. Preflight requests are left out: only browsers send them.
 */
import { VERSION } from '../../value/version.ts'
import { PATH_PARAMETERS } from '../../wire/operations/parameters.ts'
import { jsonSchemaOf } from '../../wire/reading/json-schema.ts'
import type { JsonSchema } from '../../wire/rules.ts'
import type { Schema } from '../../wire/schema.ts'
import { S3_PATH } from '../application/s3/requests.ts'
import { pathParameters } from '../parameters.ts'
import { Failures } from './failures.ts'
import { HEADERS, responseHeaders } from './headers.ts'
import type { Operation, Origin, Reply } from './operations.ts'
import { Schemas } from './schemas.ts'
import { SECURITY_SCHEMES } from './security-schemes.ts'
import { statusName } from './statuses.ts'

const SERVERS: Readonly<Record<Origin, object>> = {
  management: server('management', 'http://127.0.0.1:3220', 'For operators and pipelines.'),
  application: server('application', 'http://127.0.0.1:3210', 'For applications.'),
}

const DESCRIPTION = [
  'Two origins: operators and pipelines use the management origin, applications the other.',
  'Every object is closed: a request with an unknown field, a duplicate key or an undeclared query',
  'parameter is rejected. An unknown path is 404 and an unknown method 405. Every failure has the',
  'error envelope: branch on its `code`, never on its `message`.',
  'Responses of the application origin to a page of a listed browser origin also have the headers',
  'of CORS.',
  `The application origin also serves \`${S3_PATH}\`, which is no part of this document: its`,
  'requests and responses are those of the Amazon S3 API, with its signatures, XML and errors.',
  'The topic `s3` of `svc docs` lists the operations.',
].join(' ')

export function openApiDocument(operations: readonly Operation[]): object {
  const schemas = new Schemas()
  const failures = new Failures(schemas)
  const byPath = Map.groupBy(operations, ({ path }) => path)
  const paths = [...byPath].map(([path, those]) => {
    const methods = those.map((operation) => [
      operation.method.toLowerCase(),
      describe(operation, schemas, failures),
    ])
    const { origin } = those[0]!
    const elsewhere = origin === 'management' ? {} : { servers: [SERVERS[origin]] }
    return [path.replace(/:(\w+)/g, '{$1}'), { ...elsewhere, ...Object.fromEntries(methods) }]
  })
  return {
    openapi: '3.1.1',
    info: {
      title: 'svc',
      version: VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [SERVERS.management],
    tags: Object.keys(SERVERS).map((name) => ({ name })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      parameters: parametersOf(operations, schemas),
      headers: HEADERS,
      responses: failures.components(),
      schemas: schemas.components(),
    },
  }
}

function server(name: Origin, initial: string, description: string): object {
  const variable = `${name}Origin`
  return {
    url: `{${variable}}`,
    description: `The ${name} origin. ${description}`,
    variables: { [variable]: { default: initial } },
  }
}

function describe(operation: Operation, schemas: Schemas, failures: Failures): object {
  const { name, summary, origin, capability, authorities, body } = operation
  const replies = operation.replies.map((reply) => {
    return [String(reply.status), success(reply, operation, schemas)]
  })
  return {
    operationId: name,
    summary,
    tags: [origin],
    description: capability === null ? summary : `${summary} ${requirementOf(capability)}`,
    ...(capability !== null && { 'x-capability': capability }),
    security: authorities.map((all) => Object.fromEntries(all.map((each) => [each, []]))),
    parameters: [
      ...pathParameters(operation.path).map((each) => ({
        $ref: `#/components/parameters/${each}`,
      })),
      ...queryParameters(operation, schemas),
      ...headerParameters(operation, schemas),
    ],
    ...(body !== null && {
      requestBody: {
        required: true,
        description: `At most ${body.bytesMax} bytes.`,
        content: { [body.mediaType]: mediaOf(body.schema, schemas) },
      },
    }),
    responses: { ...Object.fromEntries(replies), ...failures.of(operation) },
  }
}

function requirementOf(capability: string): string {
  return `Requires the capability \`${capability}\`.`
}

function queryParameters({ query }: Operation, schemas: Schemas): object[] {
  if (query === null) return []
  const { properties = {}, required = [] } = jsonSchemaOf(query) as {
    readonly properties?: Readonly<Record<string, JsonSchema>>
    readonly required?: readonly string[]
  }
  return Object.entries(properties).map(([name, schema]) => {
    return { name, in: 'query', required: required.includes(name), schema: schemas.ofJson(schema) }
  })
}

function headerParameters({ headers }: Operation, schemas: Schemas): object[] {
  return headers.map(({ name, schema, required }) => {
    return { name: headerName(name), in: 'header', required, schema: schemas.of(schema) }
  })
}

function parametersOf(operations: readonly Operation[], schemas: Schemas): object {
  const names = new Set(operations.flatMap(({ path }) => pathParameters(path)))
  return Object.fromEntries(
    [...names].sort().map((name) => {
      const schema = schemas.of(PATH_PARAMETERS[name])
      return [name, { name, in: 'path', required: true, schema }]
    }),
  )
}

function success(
  reply: Reply,
  { replyHeaders, cache, headerValues }: Operation,
  schemas: Schemas,
): object {
  const content = reply.mediaTypes.map((type, i) => {
    return [type, mediaOf(i === 0 ? reply.schema : null, schemas)]
  })
  return {
    description: `${statusName(reply.status)}.`,
    // Readiness is unavailable without being an error.
    headers: responseHeaders(
      reply.status === 503 ? [...replyHeaders, 'Retry-After'] : replyHeaders,
      cache,
      headerValues,
    ),
    ...(content.length > 0 && { content: Object.fromEntries(content) }),
  }
}

/** Returns a media type object. Without a schema, it accepts any bytes. */
function mediaOf(schema: Schema<unknown> | null, schemas: Schemas): object {
  return schema === null ? {} : { schema: schemas.of(schema) }
}

/** Returns a header name in its usual case: `X-Service-Key` for `x-service-key`. */
function headerName(name: string): string {
  return name.replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => {
    return dash + letter.toUpperCase()
  })
}
