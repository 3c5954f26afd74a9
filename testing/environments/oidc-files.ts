/** A complete and valid OIDC provider configuration file. */
import { OTHER_PEPPER } from './environments.ts'

export const OIDC = {
  providerId: 'canary-idp',
  issuer: 'https://canary.test/tenant',
  discoveryUrl: 'https://canary.test/tenant/.well-known/openid-configuration',
  audience: 'https://api.canary.test/',
  allowedOrigins: ['https://canary.test', 'https://keys.canary.test:8443'],
  discriminatorClaim: 'canary_use',
  discriminatorValue: 'canary-operator',
  algorithm: 'ES256',
  requiredType: 'JWT',
  subjectPepper: OTHER_PEPPER,
  nativeClient: {
    authorizationEndpoint: 'https://canary.test/authorize?tenant=1',
    tokenEndpoint: 'https://canary.test/token',
    clientId: 'canary-client',
    scopes: ['openid', 'canary:all'],
    resource: 'https://api.canary.test/',
  },
  allowLoopbackHttp: false,
}

export const OIDC_FILE: string = JSON.stringify(OIDC)

const { nativeClient: _, ...FIELDS } = OIDC

/** A workload provider whose ID and issuer are `name`. */
export function workloadFields(name: string) {
  const origin = `https://${name}.canary.test`
  return {
    ...FIELDS,
    providerId: `canary-${name}`,
    issuer: origin,
    discoveryUrl: `${origin}/.well-known/openid-configuration`,
    allowedOrigins: [origin],
    requiredClaims: { canary_repository: 'canary/app', canary_ref: 'refs/heads/canary' },
  }
}

export const WORKLOADS = { version: 1, providers: [workloadFields('ci'), workloadFields('pods')] }
