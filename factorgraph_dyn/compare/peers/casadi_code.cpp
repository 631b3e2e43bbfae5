// Pinocchio's inverse or forward dynamics of a model, written out by CasADi as C.
//
//     casadi_code inverse|forward <file>.c < model
//
// The model is text: gravity, the number of joints, and for each its kind, parent and placement, its body's mass, center
// and inertia; then the armatures.
#include <pinocchio/autodiff/casadi.hpp>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <iostream>
#include <string>

using casadi::SX;
namespace pin = pinocchio;

static double number() {
  double x;
  std::cin >> x;
  return x;
}

template <typename Matrix> static Matrix matrix() {
  Matrix M;
  for (int i = 0; i < M.rows(); ++i)
    for (int j = 0; j < M.cols(); ++j) M(i, j) = number();
  return M;
}

static pin::JointModel joint_of(const std::string &kind) {
  if (kind == "JointModelRX") return pin::JointModelRX();
  if (kind == "JointModelRY") return pin::JointModelRY();
  if (kind == "JointModelRZ") return pin::JointModelRZ();
  if (kind == "JointModelPX") return pin::JointModelPX();
  if (kind == "JointModelPY") return pin::JointModelPY();
  if (kind == "JointModelPZ") return pin::JointModelPZ();
  if (kind == "JointModelFreeFlyer") return pin::JointModelFreeFlyer();
  std::cerr << "no joint " << kind << "\n";
  std::exit(1);
}

static pin::Model read_model() {
  pin::Model model;
  model.gravity.linear(matrix<Eigen::Vector3d>());
  const int joints = int(number());
  for (int k = 0; k < joints; ++k) {
    std::string kind;
    std::cin >> kind;
    const auto parent = pin::JointIndex(number());
    const Eigen::Matrix4d T = matrix<Eigen::Matrix4d>();
    const pin::SE3 placement(T.topLeftCorner<3, 3>(), T.topRightCorner<3, 1>());
    const auto index = model.addJoint(parent, joint_of(kind), placement, "joint" + std::to_string(k));
    const double mass = number();
    const Eigen::Vector3d center = matrix<Eigen::Vector3d>();
    model.appendBodyToJoint(index, pin::Inertia(mass, center, matrix<Eigen::Matrix3d>()), pin::SE3::Identity());
  }
  for (int k = 0; k < model.nv; ++k) model.armature[k] = number();
  return model;
}

int main(int, char **words) {
  const bool inverse = std::string(words[1]) == "inverse";
  const pin::Model model = read_model();
  const pin::ModelTpl<SX> symbolic = model.cast<SX>();
  pin::DataTpl<SX> data(symbolic);
  SX q = SX::sym("q", model.nq), v = SX::sym("v", model.nv), x = SX::sym("x", model.nv), y(model.nv, 1);
  Eigen::Matrix<SX, Eigen::Dynamic, 1> Q(model.nq), V(model.nv), X(model.nv);
  for (int k = 0; k < model.nq; ++k) Q[k] = q(k);
  for (int k = 0; k < model.nv; ++k) {
    V[k] = v(k);
    X[k] = x(k);
  }
  if (inverse) pin::rnea(symbolic, data, Q, V, X);
  else pin::aba(symbolic, data, Q, V, X);
  for (int k = 0; k < model.nv; ++k) y(k) = inverse ? data.tau[k] : data.ddq[k];
  casadi::Function("dynamics", {q, v, x}, {y}).generate(words[2]);
}
