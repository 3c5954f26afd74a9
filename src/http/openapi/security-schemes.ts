/**
 * Credentials that callers present (contract/management.md, Authentication;
 * contract/application.md, Authentication).
 */
import { ENROLLMENT_HEADER } from '../../wire/identity/oidc.ts'
import { KEY_HEADER } from '../application/callers.ts'

export const SECURITY_SCHEMES = {
  operator: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'rk_at_v1_*',
    description: 'The access token of an operator session.',
  },
  externalIdentity: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'A token that the identity provider of the operators signed.',
  },
  managedSource: {
    type: 'apiKey',
    in: 'header',
    name: ENROLLMENT_HEADER,
    description: '`Bearer` and the token of the managed source.',
  },
  applicationKey: {
    type: 'apiKey',
    in: 'header',
    name: KEY_HEADER,
    description: 'An Application Key. The management origin does not accept it.',
  },
  developmentKey: {
    type: 'apiKey',
    in: 'header',
    name: KEY_HEADER,
    description: 'A development key, which calls no Function.',
  },
  functionalToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The identity that the application calls for: a guest, a user or a service.',
  },
  uploadGrant: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'rk_upl_v1_*',
    description: 'The token of one upload grant, which a Function made.',
  },
  downloadGrant: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'rk_dnl_v1_*',
    description: 'The token of a download grant of the file, which a Function made.',
  },
} as const
