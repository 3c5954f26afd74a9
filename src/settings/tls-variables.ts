/** The settings of listeners that end TLS, each a `Variable`. */

export const TLS_VARIABLES = [
  {
    name: 'SERVICE_TLS_CERTIFICATE_FILE',
    required: 'paired',
    secret: false,
    file: false,
    description:
      'Absolute path of a PEM file with the certificate and those of its issuers; listeners that ' +
      'stand behind no proxy then end TLS',
  },
  {
    name: 'SERVICE_TLS_KEY_FILE',
    required: 'paired',
    secret: false,
    file: false,
    description: 'Absolute path of a PEM file with the private key of the certificate',
  },
  {
    name: 'SERVICE_TLS_ACME_DOMAIN',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Up to 16 names, separated by commas, that the server orders a certificate for by ACME, in ' +
      'place of the files; the operator who sets it agrees to the terms of the authority',
  },
  {
    name: 'SERVICE_TLS_ACME_EMAIL',
    required: 'no',
    secret: false,
    file: false,
    description: 'Address that the authority may write to about the account and its certificates',
  },
  {
    name: 'SERVICE_TLS_ACME_DIRECTORY_URL',
    required: 'no',
    secret: false,
    file: false,
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description: 'HTTPS URL of the ACME directory of the authority',
  },
  {
    name: 'SERVICE_TLS_ACME_CA_FILE',
    required: 'no',
    secret: false,
    file: false,
    description:
      'Absolute path of a PEM file with the certificates that the directory is trusted by, in ' +
      'place of the public ones',
  },
  {
    name: 'SERVICE_TLS_ACME_HTTP_LISTEN',
    required: 'no',
    secret: false,
    file: false,
    default: '0.0.0.0:80',
    description:
      'Address, such as 0.0.0.0:80 or [::]:80, that answers the challenges of the authority and ' +
      'redirects to HTTPS',
  },
] as const
